#include "base/file.h"
#include "base/formats/torch_file.h"
#include "base/formats/zip_file.h"
#include "tests/base/temp_folder.h"
#include "tests/fuzz/fuzz_target.h"

namespace medusa::fuzz {
namespace {

constexpr const char* kPickle = "archive/data.pkl";

/// A file of torch.save, as we write it.
std::string archive_seed() {
  const fixtures::TempFolder folder;
  const std::vector<uint8_t> data(32);
  const SafetensorsEntry entries[] = {{"0.0.linear.bias", "F32", {4}, std::span(data).first(16)},
                                      {"0.0.linear.weight", "BF16", {4, 4}, data},
                                      {"empty", "I64", {0}, {}}};
  write_torch_file(folder / "m.pt", entries);
  return read_file(folder / "m.pt");
}

/// A member of an archive that lies in a file.
std::string member(const std::string& archive, const std::string& name) {
  const fixtures::TempFolder folder;
  write_file(folder / "m.pt", archive);
  const ZipFile zip(folder / "m.pt");
  const auto bytes = zip.read(name);
  return {bytes.begin(), bytes.end()};
}

/// An input is a whole archive, or else the pickle of one whose checksums are right: they would
/// otherwise keep the damage out of the pickle's reader.
std::string archive_of(std::string_view input) {
  if (input.starts_with("PK")) return std::string(input);
  static const std::string storage(64, '\x3f');  // enough for each of the seeds' tensors
  std::vector<ZipMember> members{{kPickle, {input}}};
  for (int i = 0; i < 10; ++i) members.push_back({"archive/data/" + std::to_string(i), {storage}});
  return zip_bytes(members);
}

void run_torch(const std::string& path) {
  for (const TorchFile torch(path); const SafetensorsEntry& entry : torch.entries())
    touch(entry.bytes);
}

}  // namespace

std::vector<FuzzTarget> torch_targets() {
  const std::string ours = archive_seed();
  const std::string pythons = read_file(MEDUSA_SOURCE_DIR "/tests/golden/torch_save.pt");
  return {{"pickle",
           "m.pt",
           {ours, pythons, member(ours, kPickle), member(pythons, "torch_save/data.pkl")},
           {"\x80\x02",
            "}q",
            "(",
            "tq",
            "Rq",
            "u.",
            "s.",
            "X\x01",
            "K\x01",
            "M\xff\xff",
            "J\xff\xff\xff\x7f",
            "\x8a\x08",
            "ctorch._utils\n_rebuild_tensor_v2\n",
            "ctorch\nFloatStorage\n",
            "ccollections\nOrderedDict\n",
            "cos\nsystem\n",
            "storage",
            "cpu",
            "h",
            "j",
            "\x85",
            "\x86",
            "\x87",
            "\x88",
            "\x89",
            "]",
            ")",
            "Q",
            "N"},
           run_torch,
           archive_of}};
}

}  // namespace medusa::fuzz
