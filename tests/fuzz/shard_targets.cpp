// Dataset shards. An input is a recipe: which parts of a shard libhdf5 makes in an odd way, then
// which fields of its structure are damaged. The checksum is right afterwards, as an attacker's
// would be.
#include <filesystem>
#include <stdexcept>
#include <unordered_map>

#include "data/dataset/dataset_format.h"
#include "data/dataset/dataset_reader.h"
#include "tests/data/hdf5_fields.h"
#include "tests/data/odd_hdf5.h"
#include "tests/fuzz/fuzz_target.h"

namespace medusa::fuzz {
namespace {

using namespace fixtures;
namespace names = dataset_format;

// What an odd part is, by the third byte of its three. Those of the first group are attributes.
constexpr const char* kNowhere = "/nowhere/medusa.h5";
enum OddKind : uint8_t { ListOfNumbers, ListOfTexts, Number, Type, Missing, Extra };
constexpr uint8_t kAttributeKinds = Extra + 1;
enum OddList : uint8_t {
  HugeList,
  HugeTexts,
  HugeChunks,
  OtherType,
  OtherRank,
  InHeader,
  InChunks,
  Deflated,
  Filtered,
  Elsewhere,
  Virtual,
  LinkedAway,
  SoftlyLinked,
  LinkedTwice,
  Group,
  NamedType,
  Left,
  Added
};
constexpr uint8_t kListKinds = Added + 1;

hid_t odd_type(uint8_t choice) {
  const hid_t types[] = {H5T_STD_I64LE,  H5T_STD_I8LE,   H5T_STD_U16LE,        H5T_STD_I32LE,
                         H5T_STD_U64LE,  H5T_IEEE_F32LE, H5T_IEEE_F64LE,       H5T_STD_I64BE,
                         text_type(1),   text_type(40),  variable_text_type(), H5T_STD_REF_OBJ,
                         H5T_UNIX_D64LE, H5T_STD_B64LE,  text_type(1000),      H5T_STD_U8LE};
  return types[choice % std::size(types)];
}

OddPart odd_attribute(uint8_t kind, uint8_t choice) {
  constexpr int64_t kOddNumbers[] = {
      0,         1,        -1,       2,        3,         100,       1 << 20,       1 << 24,
      INT32_MAX, 1L << 40, 1L << 48, 1L << 60, INT64_MAX, INT64_MIN, INT64_MAX / 2, 255};
  switch (kind % kAttributeKinds) {
    case ListOfNumbers:
      return attribute_of(H5T_STD_I64LE, {hsize_t{1} + choice});
    case ListOfTexts:
      return attribute_of(text_type(40), {hsize_t{1} + choice});
    case Number:
      return number_attribute(kOddNumbers[choice % std::size(kOddNumbers)]);
    case Missing:
      return nothing();
    default:
      return attribute_of(odd_type(choice), choice < 128 ? Shape{} : Shape{hsize_t{choice} % 5, 3});
  }
}

OddPart odd_dataset(uint8_t kind, uint8_t choice) {
  const hsize_t huge = hsize_t{1} << (24 + choice % 36), few = choice % 8;
  switch (kind % kListKinds) {
    case HugeList:
      return dataset_of(choice % 2 == 0 ? H5T_STD_I32LE : H5T_STD_I64LE, {huge});
    case HugeTexts:
      return dataset_of(text_type(choice % 2 == 0 ? 1000 : 16), {huge >> 8});
    case HugeChunks:
      return dataset_of(text_type(16), {huge << 1}, OddLayout::Chunked);
    case OtherType:
      return dataset_of(odd_type(choice), {few});
    case OtherRank:
      return dataset_of(odd_type(choice), Shape(few, few));
    case InHeader:
      return dataset_of(odd_type(choice), {1 + few}, OddLayout::Compact);
    case InChunks:
      return dataset_of(odd_type(choice), {1 + few}, OddLayout::Chunked);
    case Deflated:
      return dataset_of(H5T_STD_I64LE, {1 + few}, OddLayout::Compressed);
    case Filtered:
      return dataset_of(H5T_STD_I32LE, {1 + few}, OddLayout::ForeignFilter);
    case Elsewhere:
      return external_storage(kNowhere);
    case Virtual:
      return virtual_dataset(kNowhere);
    case LinkedAway:
      return external_link(kNowhere);
    case SoftlyLinked:
      return soft_link(kNowhere);
    case LinkedTwice:
      return hard_link(names::kTokens);
    case Group:
      return group();
    case NamedType:
      return named_type();
    case Left:
      return nothing();
    default:
      return dataset_of(odd_type(choice), {few});
  }
}

/// A shard before it is damaged, with the fields of its structure.
struct MadeShard {
  std::string bytes;
  std::vector<Hdf5Field> fields;
};

/// The same, but nothing where libhdf5 refuses to make it.
OddPart if_possible(const OddPart& part) {
  return [part](hid_t file, const char* name) {
    try {
      part(file, name);
    } catch (const std::logic_error&) {  // of the fixture, which cannot go on
    }
  };
}

/// @param recipe  the base, then three bytes for each odd part.
MadeShard make_shard(std::string_view recipe) {
  std::map<std::string, OddPart> parts;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(recipe[at]); };
  for (size_t at = 1; at + 3 <= recipe.size(); at += 3) {
    const std::string& name = shard_parts()[byte(at) % shard_parts().size()];
    const uint8_t kind = byte(at + 1), choice = byte(at + 2);
    if (name[0] == '/')
      parts[kind % kListKinds == Added ? "/added" : name] = if_possible(odd_dataset(kind, choice));
    else
      parts[kind % kAttributeKinds == Extra ? "added" : name] =
          if_possible(odd_attribute(kind, choice));
  }
  MadeShard made{odd_shard(parts, static_cast<OddBase>(byte(0) % 4)), {}};
  made.fields = hdf5_fields(made.bytes);
  return made;
}

/// libhdf5 takes ten times as long as our reader, and most recipes differ in the damage alone.
const MadeShard& made_shard(const std::string& recipe) {
  constexpr size_t kMostKept = 4000;
  static std::unordered_map<std::string, MadeShard> kept;
  if (kept.size() > kMostKept) kept.clear();
  const auto [made, added] = kept.try_emplace(recipe);
  if (added) made->second = make_shard(recipe);
  return made->second;
}

/// @param damage  four bytes for each field: which (two of them), how, by what.
void damage_fields(MadeShard& shard, std::string_view damage) {
  constexpr uint64_t kValues[] = {0,
                                  1,
                                  2,
                                  3,
                                  7,
                                  8,
                                  0x7F,
                                  0x80,
                                  0xFF,
                                  0x7FFF,
                                  0xFFFF,
                                  0x7FFFFFFF,
                                  0xFFFFFFFF,
                                  uint64_t{1} << 40,
                                  uint64_t{1} << 60,
                                  uint64_t{1} << 61,
                                  0x7FFFFFFFFFFFFFFF,
                                  0x8000000000000000,
                                  0xFFFFFFFFFFFFFFF8,
                                  0xFFFFFFFFFFFFFFFF};
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(damage[at]); };
  for (size_t at = 0; at + 4 <= damage.size(); at += 4) {
    const size_t which = byte(at) | size_t{byte(at + 1)} << 8;
    const Hdf5Field& field = shard.fields[which % shard.fields.size()];
    const uint8_t how = byte(at + 2), by = byte(at + 3);
    uint64_t value = get_field(shard.bytes, field);
    switch (how % 6) {
      case 0:
        value = kValues[by % std::size(kValues)];
        break;
      case 1:
        value += by;
        break;
      case 2:
        value -= by;
        break;
      case 3:
        value ^= uint64_t{1} << by % 64;
        break;
      case 4:  // what another field has: an address that leads back, say
        value = get_field(shard.bytes, shard.fields[(which + by) % shard.fields.size()]);
        break;
      default:  // about the file's end
        value = shard.bytes.size() + by - 128;
    }
    set_field(shard.bytes, field, value);
  }
}

/// An input is how many odd parts there are, the base, the parts, then the damage; or a whole file.
std::string shard_of(std::string_view input) {
  if (input.starts_with("\x89HDF")) return finalized(std::string(input));
  constexpr size_t kMostParts = 4;
  const size_t parts = input.empty() ? 0 : static_cast<uint8_t>(input[0]) % kMostParts;
  std::string recipe(input.substr(std::min<size_t>(input.size(), 1), 1 + 3 * parts));
  if (recipe.empty()) recipe = std::string(1, '\0');
  const size_t used = std::min(input.size(), 1 + recipe.size());
  if (used == input.size()) return made_shard(recipe).bytes;
  MadeShard shard = made_shard(recipe);
  damage_fields(shard, input.substr(used));
  return finalized(std::move(shard.bytes));
}

void run_shard(const std::string& path) {
  const DatasetReader dataset(std::filesystem::path(path).parent_path());
  const auto width = static_cast<size_t>(dataset.info().hidden_size);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    if (!dataset.has_hidden(i)) continue;
    std::vector<uint16_t> states(dataset.answer(i).size() * width);
    dataset.read_hidden(i, states);
  }
}

/// The recipe of one odd part.
std::string one_part(const std::string& name, uint8_t kind, uint8_t choice,
                     OddBase base = OddBase::Bfloat16) {
  const auto& parts = shard_parts();
  const auto index = std::find(parts.begin(), parts.end(), name) - parts.begin();
  return {'\1', static_cast<char>(base), static_cast<char>(index), static_cast<char>(kind),
          static_cast<char>(choice)};
}

}  // namespace

std::vector<FuzzTarget> shard_targets() {
  FuzzTarget target;
  target.name = "shard";
  target.file = "shard-00000.h5";
  target.run = run_shard;
  target.file_of = shard_of;
  for (const char base : {'\0', '\1', '\2', '\3'}) target.seeds.push_back({'\0', base});
  target.seeds.push_back(odd_shard({}));
  // What reached other memory, other files or other code, when libhdf5 read them for us.
  target.past_findings = {one_part(names::kVocabSizeAttribute, ListOfNumbers, 199),
                          one_part(names::kFormatAttribute, ListOfTexts, 39),
                          one_part(names::kPromptId, HugeChunks, 35),
                          one_part(names::kTokens, HugeList, 16),
                          one_part(names::kOffsets, HugeList, 35),
                          one_part(names::kPromptId, HugeTexts, 24),
                          one_part(names::kHiddenScale, HugeList, 16, OddBase::Int8),
                          one_part(names::kTokens, Elsewhere, 0),
                          one_part(names::kTokens, Virtual, 0),
                          one_part(names::kTokens, LinkedAway, 0),
                          one_part(names::kTokens, SoftlyLinked, 0),
                          one_part(names::kTokens, Filtered, 4)};
  for (const std::string& finding : target.past_findings)
    target.tokens.push_back(finding.substr(2));
  for (const char how : {'\0', '\1', '\2', '\3', '\4', '\5'})
    target.tokens.push_back({'\1', '\0', how, '\x0D'});
  return {target};
}

}  // namespace medusa::fuzz
