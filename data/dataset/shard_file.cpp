#include "data/dataset/shard_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "data/dataset/dataset_format.h"
#include "data/dataset/hdf5_reader.h"
#include "data/dataset/hdf5_writer.h"

namespace medusa {
namespace fs = std::filesystem;
namespace names = dataset_format;
namespace {

/// The SHA-256 digits of the file, its own checksum counted as zeros.
/// @param digits_at  where the checksum's digits begin.
std::string checksum_digits(std::string_view bytes, size_t digits_at) {
  const std::string zeros(names::kChecksumDigits, '0');
  const std::string digest = Fingerprint()
                                 .add(bytes.substr(0, digits_at))
                                 .add(std::string_view(zeros))
                                 .add(bytes.substr(digits_at + names::kChecksumDigits))
                                 .digest();
  return digest.substr(digest.size() - names::kChecksumDigits);
}

}  // namespace

void ShardSamples::append(const Sample& sample) {
  tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
  offsets.push_back(static_cast<int64_t>(tokens.size()));
  answer_start.push_back(sample.answer_start);
  prompt_id.push_back(sample.prompt_id);
  hidden.insert(hidden.end(), sample.hidden.begin(), sample.hidden.end());
  const int64_t rows = sample.hidden.empty() ? 0 : sample.answer_length();
  hidden_offsets.push_back(hidden_offsets.back() + rows);
}

int64_t ShardSamples::num_answer_tokens() const {
  int64_t prompt_tokens = 0;
  for (const int64_t each : answer_start) prompt_tokens += each;
  return static_cast<int64_t>(tokens.size()) - prompt_tokens;
}

int64_t format_version(const DatasetInfo& info) {
  const bool plain = info.states == StateFormat::Bfloat16 && info.states_budget == 0;
  return plain || info.hidden_size == 0 ? names::kVersion : names::kVersionWithStates;
}

std::string encode_shard(const ShardHeader& header, const ShardSamples& samples) {
  Hdf5Builder file;
  // The checksum comes first, so that its word is found before any text of the user's.
  const std::string zeros(names::kChecksumDigits, '0');
  file.text(names::kChecksumAttribute, std::string(names::kChecksumWord) + zeros);
  file.text(names::kFormatAttribute, names::kFormat);
  const bool with_states = format_version(header.info) == names::kVersionWithStates;
  file.number(names::kVersionAttribute, format_version(header.info));
  file.text(names::kBackboneAttribute, header.info.backbone);
  file.text(names::kTokenizerAttribute, header.info.tokenizer);
  file.text(names::kPromptsAttribute, header.info.prompts);
  file.text(names::kSamplingAttribute, header.info.sampling);
  file.number(names::kSeedAttribute, header.info.seed);
  file.number(names::kVocabSizeAttribute, header.info.vocab_size);
  file.number(names::kHiddenSizeAttribute, header.info.hidden_size);
  if (with_states) {
    file.text(names::kStatesAttribute, enum_name(header.info.states));
    file.number(names::kStatesBudgetAttribute, header.info.states_budget);
  }
  file.number(names::kFirstAttribute, header.first);
  file.number(names::kCountAttribute, header.count);
  file.number(names::kTotalAttribute, header.total);
  file.number(names::kLastAttribute, int64_t{header.last});
  file.array(names::kTokens, samples.tokens);
  file.array(names::kOffsets, samples.offsets);
  file.array(names::kAnswerStart, samples.answer_start);
  file.array(names::kPromptId, samples.prompt_id);
  if (header.info.hidden_size > 0) {
    if (header.info.states == StateFormat::Int8) {
      const Int8Rows rows = round_rows(samples.hidden, header.info.hidden_size);
      file.matrix(names::kHidden, rows.levels, header.info.hidden_size);
      file.array(names::kHiddenScale, rows.scales);
    } else {
      file.matrix(names::kHidden, samples.hidden, header.info.hidden_size);
    }
    file.array(names::kHiddenOffsets, samples.hidden_offsets);
  }
  std::string bytes = file.bytes();
  const size_t word_at = bytes.find(names::kChecksumWord);
  MEDUSA_ASSERT(word_at != std::string::npos);
  const size_t digits_at = word_at + names::kChecksumWord.size();
  MEDUSA_ASSERT(bytes.compare(digits_at, zeros.size(), zeros) == 0, word_at);
  bytes.replace(digits_at, zeros.size(), checksum_digits(bytes, digits_at));
  return bytes;
}

ShardFile::ShardFile(const fs::path& path) : file_(path) {
  check_bytes();
  read();
  check_samples();
}

std::string_view ShardFile::bytes() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

void ShardFile::check_bytes() const {
  const std::string name = path().string();
  const std::string_view bytes = this->bytes();
  if (!is_hdf5(file_.bytes()))
    throw UserError(
        fmt::format("{}: not an HDF5 file, expected a shard of a dataset; remove it and {}", name,
                    kWriteAgain));
  const uint64_t expected = hdf5_expected_size(file_.bytes());
  if (bytes.size() < expected)
    throw UserError(fmt::format("{}: cut short, it has {} of {} bytes; remove it and {}", name,
                                bytes.size(), expected, kWriteAgain));
  const size_t word_at = bytes.find(names::kChecksumWord);
  const size_t digits_at = word_at + names::kChecksumWord.size();
  if (word_at == std::string_view::npos || digits_at + names::kChecksumDigits > bytes.size())
    throw UserError(fmt::format(
        "{}: an HDF5 file of another program, expected a shard of a dataset; remove it and {}",
        name, kWriteAgain));
  const std::string_view stated = bytes.substr(digits_at, names::kChecksumDigits);
  const std::string actual = checksum_digits(bytes, digits_at);
  if (stated != actual)
    throw UserError(
        fmt::format("{}: altered, its bytes have SHA-256 {}…, expected {}…; remove it and {}", name,
                    actual.substr(0, 12), stated.substr(0, 12), kWriteAgain));
}

void ShardFile::read() {
  const Hdf5Reader file(file_.bytes(), path());
  read_header(file);
  check_header();
  check_lengths(file);
  samples_.tokens = file.int32_list(names::kTokens);
  samples_.offsets = file.int64_list(names::kOffsets);
  samples_.answer_start = file.int64_list(names::kAnswerStart);
  samples_.prompt_id = file.text_list(names::kPromptId);
  if (header_.info.hidden_size == 0) return;
  samples_.hidden_offsets = file.int64_list(names::kHiddenOffsets);
  read_hidden_place(file);
}

void ShardFile::read_header(const Hdf5Reader& file) {
  if (const std::string format = file.text(names::kFormatAttribute); format != names::kFormat)
    throw UserError(fmt::format("{}: holds '{}', expected '{}'; check the path", path().string(),
                                format, names::kFormat));
  const int64_t version = file.number(names::kVersionAttribute);
  if (version != names::kVersion && version != names::kVersionWithStates)
    throw UserError(fmt::format(
        "{}: format version {}, this program reads versions {} and {}; use the program that wrote "
        "it or distill again",
        path().string(), version, names::kVersion, names::kVersionWithStates));
  header_.info.backbone = file.text(names::kBackboneAttribute);
  header_.info.tokenizer = file.text(names::kTokenizerAttribute);
  header_.info.prompts = file.text(names::kPromptsAttribute);
  header_.info.sampling = file.text(names::kSamplingAttribute);
  header_.info.seed = file.unsigned_number(names::kSeedAttribute);
  header_.info.vocab_size = file.number(names::kVocabSizeAttribute);
  header_.info.hidden_size = file.number(names::kHiddenSizeAttribute);
  if (version == names::kVersionWithStates) {
    header_.info.states = read_format(file.text(names::kStatesAttribute));
    header_.info.states_budget = file.number(names::kStatesBudgetAttribute);
  }
  header_.first = file.number(names::kFirstAttribute);
  header_.count = file.number(names::kCountAttribute);
  header_.total = file.number(names::kTotalAttribute);
  const int64_t last = file.number(names::kLastAttribute);
  check_range(names::kLastAttribute, last, 0, 1);
  header_.last = last != 0;
}

void ShardFile::check_range(const char* name, int64_t value, int64_t least, int64_t most) const {
  if (value < least || value > most)
    fail_inconsistent(fmt::format("its '{}' is {}, expected {} to {}", name, value, least, most));
}

/// The limits keep what is computed from these numbers, here and by who trains on them, from
/// overflowing and from asking for memory that no dataset needs.
void ShardFile::check_header() const {
  const DatasetInfo& info = header_.info;
  check_range(names::kVocabSizeAttribute, info.vocab_size, 1, names::kMostVocabulary);
  check_range(names::kHiddenSizeAttribute, info.hidden_size, 0, names::kMostHiddenSize);
  check_range(names::kStatesBudgetAttribute, info.states_budget, 0, INT64_MAX);
  check_range(names::kTotalAttribute, header_.total, 0, names::kMostPrompts);
  check_range(names::kFirstAttribute, header_.first, 0, header_.total);
  check_range(names::kCountAttribute, header_.count, 0, header_.total - header_.first);
}

/// Before anything is copied: lists of one length, so that none asks for more than the file's size.
void ShardFile::check_lengths(const Hdf5Reader& file) const {
  const int64_t size = file.length(names::kAnswerStart), offsets = file.length(names::kOffsets),
                ids = file.length(names::kPromptId);
  if (offsets - 1 != size || ids != size)
    fail_inconsistent(
        fmt::format("it has {} answer starts, {} offsets and {} prompt ids", size, offsets, ids));
  if (header_.count < size)
    fail_inconsistent(fmt::format("it holds {} samples of prompts {} to {} of {}", size,
                                  header_.first, header_.first + header_.count, header_.total));
  if (header_.info.hidden_size > 0 && file.length(names::kHiddenOffsets) - 1 != size)
    fail_inconsistent(fmt::format("it has {} samples and {} hidden offsets", size,
                                  file.length(names::kHiddenOffsets)));
}

StateFormat ShardFile::read_format(const std::string& text) const {
  for (const auto& [name, format] : EnumNames<StateFormat>::values)
    if (text == name) return format;
  fail_inconsistent(fmt::format("its states are '{}', neither bfloat16 nor int8", text));
}

void ShardFile::read_hidden_place(const Hdf5Reader& file) {
  const bool rounded = header_.info.states == StateFormat::Int8;
  const auto block =
      rounded ? file.int8_matrix(names::kHidden) : file.uint16_matrix(names::kHidden);
  if (block.columns != header_.info.hidden_size)
    fail_inconsistent(fmt::format("its hidden states have {} columns, hidden_size says {}",
                                  block.columns, header_.info.hidden_size));
  hidden_offset_ = block.offset;
  hidden_rows_ = block.rows;
  if (!rounded) return;
  if (const int64_t scales = file.length(names::kHiddenScale); scales != block.rows)
    fail_inconsistent(
        fmt::format("its {} rows of hidden states have {} scales", block.rows, scales));
  hidden_scales_ = file.float_list(names::kHiddenScale);
  check_scales();
}

/// NaN is the scale of a row with a number that is none.
void ShardFile::check_scales() const {
  for (size_t i = 0; i < hidden_scales_.size(); ++i)
    if (std::isinf(hidden_scales_[i]) || hidden_scales_[i] < 0)
      fail_inconsistent(fmt::format("the scale of hidden row {} is {}", i, hidden_scales_[i]));
}

void ShardFile::fail_inconsistent(const std::string& found) const {
  throw UserError(
      fmt::format("{}: inconsistent, {}; remove it and {}", path().string(), found, kWriteAgain));
}

void ShardFile::check_samples() const {
  const auto& [tokens, offsets, answer_start, prompt_id, hidden, hidden_offsets] = samples_;
  const size_t size = answer_start.size();
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  if (offsets.front() != 0 || offsets.back() != num_tokens)
    fail_inconsistent(fmt::format("its offsets run from {} to {}, its tokens from 0 to {}",
                                  offsets.front(), offsets.back(), num_tokens));
  const bool has_hidden = header_.info.hidden_size > 0;
  const auto fits = [&](int64_t rows, int64_t answer_tokens) {
    return rows == answer_tokens || (rows == 0 && header_.info.states_budget > 0);
  };
  if (has_hidden && (hidden_offsets.front() != 0 || hidden_offsets.back() != hidden_rows_))
    fail_inconsistent(
        fmt::format("its hidden offsets do not fit its {} hidden rows", hidden_rows_));
  for (size_t i = 0; i < size; ++i) {
    // The first comparison keeps the others from overflowing.
    if (offsets[i + 1] < offsets[i] || offsets[i + 1] > num_tokens)
      fail_inconsistent(
          fmt::format("sample {} runs from token {} to {}", i, offsets[i], offsets[i + 1]));
    const int64_t length = offsets[i + 1] - offsets[i];
    if (answer_start[i] < 1 || answer_start[i] >= length)
      fail_inconsistent(fmt::format("sample {} has {} tokens and its answer starts at {}", i,
                                    length, answer_start[i]));
    if (has_hidden &&
        (hidden_offsets[i + 1] < hidden_offsets[i] || hidden_offsets[i + 1] > hidden_rows_))
      fail_inconsistent(fmt::format("the hidden rows of sample {} run from {} to {}", i,
                                    hidden_offsets[i], hidden_offsets[i + 1]));
    if (has_hidden && !fits(hidden_offsets[i + 1] - hidden_offsets[i], length - answer_start[i]))
      fail_inconsistent(fmt::format("sample {} has {} answer tokens and {} hidden rows", i,
                                    length - answer_start[i],
                                    hidden_offsets[i + 1] - hidden_offsets[i]));
  }
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= header_.info.vocab_size)
      fail_inconsistent(fmt::format("token {} is {}, the vocabulary has {}", i, tokens[i],
                                    header_.info.vocab_size));
}

void ShardFile::read_hidden(int64_t first, std::span<uint16_t> out) const {
  const int64_t width = header_.info.hidden_size;
  const auto elements = static_cast<int64_t>(out.size());
  MEDUSA_ASSERT(width > 0 && first >= 0 && elements % width == 0, first, elements, width);
  MEDUSA_ASSERT(first + elements / width <= hidden_rows_, first, elements, hidden_rows_);
  if (out.empty()) return;
  if (header_.info.states == StateFormat::Int8) {
    const auto at = static_cast<size_t>(hidden_offset_ + first * width);
    const auto* levels = reinterpret_cast<const int8_t*>(file_.bytes().subspan(at).data());
    const auto scales =
        std::span(hidden_scales_)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(elements / width));
    unround_rows({levels, out.size()}, scales, out);
    return;
  }
  const auto at =
      static_cast<size_t>(hidden_offset_) + static_cast<size_t>(first * width) * sizeof(uint16_t);
  std::memcpy(out.data(), file_.bytes().subspan(at, out.size_bytes()).data(), out.size_bytes());
}

void remove_shards(const std::filesystem::path& folder) {
  std::error_code none;
  std::vector<std::filesystem::path> shards;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    const bool is_shard = name.starts_with("shard-") &&
                          (name.ends_with(".h5") || name.find(".h5.part-") != std::string::npos);
    if (is_shard && !entry.is_directory()) shards.push_back(entry.path());
  }
  for (const std::filesystem::path& shard : shards) std::filesystem::remove(shard);
}

std::string shard_name(int64_t shard) { return fmt::format("shard-{:05}.h5", shard); }

std::map<int64_t, fs::path> find_shards(const fs::path& folder) {
  std::map<int64_t, fs::path> shards;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t digit = name.find_first_of("0123456789");
    if (digit == std::string::npos) continue;
    const int64_t number = std::atoll(name.c_str() + digit);
    if (name == shard_name(number)) shards[number] = entry.path();
  }
  return shards;
}

std::optional<InfoDifference> find_difference(const DatasetInfo& left, const DatasetInfo& right) {
  const auto differ = [](const char* what, const std::string& a, const std::string& b) {
    return InfoDifference{fmt::format("{} {}", what, a), fmt::format("{} {}", what, b)};
  };
  using Text = std::string DatasetInfo::*;
  for (const auto& [what, field] :
       {std::pair<const char*, Text>{"backbone", &DatasetInfo::backbone},
        {"tokenizer", &DatasetInfo::tokenizer},
        {"prompts", &DatasetInfo::prompts}})
    if (left.*field != right.*field)
      return differ(what, short_fingerprint(left.*field), short_fingerprint(right.*field));
  if (left.sampling != right.sampling) {
    // Show the first line that differs: the settings are a whole YAML text.
    const auto line_at = [](const std::string& text, size_t at) {
      const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return fmt::format("'{}'", text.substr(begin, text.find('\n', begin) - begin));
    };
    size_t at = 0;
    while (at < left.sampling.size() && at < right.sampling.size() &&
           left.sampling[at] == right.sampling[at])
      ++at;
    return differ("sampling", line_at(left.sampling, at), line_at(right.sampling, at));
  }
  if (left.seed != right.seed)
    return differ("seed", std::to_string(left.seed), std::to_string(right.seed));
  if (left.vocab_size != right.vocab_size)
    return differ("vocab_size", std::to_string(left.vocab_size), std::to_string(right.vocab_size));
  if (left.hidden_size != right.hidden_size)
    return differ("hidden_size", std::to_string(left.hidden_size),
                  std::to_string(right.hidden_size));
  if (left.states != right.states)
    return differ("states in", enum_name(left.states), enum_name(right.states));
  if (left.states_budget != right.states_budget)
    return differ("a budget for states of", std::to_string(left.states_budget),
                  std::to_string(right.states_budget));
  return std::nullopt;
}

}  // namespace medusa
