#include "data/dataset/dataset_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// The shards of the folder, which must be numbered from 0 without a gap.
std::map<int64_t, fs::path> list_shards(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw UserError(fmt::format(
        "{}: no such folder, expected a dataset; check the path or run `medusa distill` first",
        folder.string()));
  auto shards = find_shards(folder);
  if (shards.empty())
    throw UserError(
        fmt::format("{}: holds no {}, expected a dataset; check the path or run `medusa distill` "
                    "first",
                    folder.string(), shard_name(0)));
  int64_t expected = 0;
  for (const auto& [number, path] : shards) {
    if (number != expected)
      throw UserError(fmt::format("{}: {} is missing before {}; {}", folder.string(),
                                  shard_name(expected), shard_name(number), kWriteAgain));
    ++expected;
  }
  return shards;
}

}  // namespace

DatasetReader::DatasetReader(const fs::path& folder) {
  for (const auto& [number, path] : list_shards(folder)) {
    ShardFile shard(path);
    if (shards_.empty()) info_ = shard.header().info;
    check_follows(shard, num_prompts_);
    num_prompts_ += shard.header().count;
    take(shard, shards_.size());
    shards_.push_back(std::move(shard));
  }
  num_answer_tokens_ = static_cast<int64_t>(tokens_.size());
  for (const int64_t each : answer_starts_) num_answer_tokens_ -= each;
  complete_ = shards_.back().header().last;
  fingerprint_ = compute_fingerprint();
  sources_.push_back({folder, 1, fingerprint_, num_hidden_, 0, size()});
}

DatasetReader::DatasetReader(std::span<const WeightedFolder> folders)
    : DatasetReader(folders[0].folder) {
  sources_[0].weight = folders[0].weight;
  if (folders.size() == 1) return;  // a weight alone changes nothing but how long an epoch is
  Fingerprint fingerprint;
  fingerprint.add(fingerprint_).add(fmt::format("{}", folders[0].weight));
  for (const WeightedFolder& each : folders.subspan(1)) {
    DatasetReader other(each.folder);
    check_fits(other);
    other.sources_[0].weight = each.weight;
    fingerprint.add(other.fingerprint_).add(fmt::format("{}", each.weight));
    append(std::move(other));
  }
  fingerprint_ = fingerprint.digest();
}

void DatasetReader::check_fits(const DatasetReader& other) const {
  const std::string name = other.sources_[0].folder.string();
  const std::string first = sources_[0].folder.string();
  const auto check_same = [&](const char* what, const std::string& found,
                              const std::string& expected) {
    if (found != expected)
      throw UserError(fmt::format(
          "{}: made with {} {}, {} with {}, expected datasets of one model; leave it out or distil "
          "its prompts with the other model",
          name, what, short_fingerprint(found), first, short_fingerprint(expected)));
  };
  check_same("backbone", other.info_.backbone, info_.backbone);
  check_same("tokenizer", other.info_.tokenizer, info_.tokenizer);
  check_same("a vocabulary of", std::to_string(other.info_.vocab_size),
             std::to_string(info_.vocab_size));
  if (other.info_.hidden_size > 0 && info_.hidden_size > 0)  // else one of them has no states
    check_same("states of", std::to_string(other.info_.hidden_size),
               std::to_string(info_.hidden_size));
  for (const DatasetSource& source : sources_)
    if (source.fingerprint == other.fingerprint_)
      throw UserError(
          fmt::format("{}: holds the same samples as {}, expected others; name it once and raise "
                      "its weight",
                      name, source.folder.string()));
}

void DatasetReader::append(DatasetReader&& other) {
  const size_t first_shard = shards_.size();
  const auto first_token = static_cast<int64_t>(tokens_.size());
  DatasetSource source = std::move(other.sources_[0]);
  source.first = size();
  tokens_.insert(tokens_.end(), other.tokens_.begin(), other.tokens_.end());
  for (size_t i = 1; i < other.offsets_.size(); ++i)
    offsets_.push_back(first_token + other.offsets_[i]);
  answer_starts_.insert(answer_starts_.end(), other.answer_starts_.begin(),
                        other.answer_starts_.end());
  std::move(other.prompt_ids_.begin(), other.prompt_ids_.end(), std::back_inserter(prompt_ids_));
  for (const HiddenRows& rows : other.hidden_rows_)
    hidden_rows_.push_back({first_shard + rows.shard, rows.first});
  std::move(other.shards_.begin(), other.shards_.end(), std::back_inserter(shards_));
  num_answer_tokens_ += other.num_answer_tokens_;
  num_prompts_ += other.num_prompts_;
  complete_ = complete_ && other.complete_;
  num_hidden_ += other.num_hidden_;
  if (info_.hidden_size == 0) info_.hidden_size = other.info_.hidden_size;
  sources_.push_back(std::move(source));
}

const DatasetSource& DatasetReader::source_of(int64_t i) const {
  MEDUSA_ASSERT(i >= 0 && i < size(), i, size());
  const auto after = std::upper_bound(
      sources_.begin(), sources_.end(), i,
      [](int64_t sample, const DatasetSource& each) { return sample < each.first; });
  return *std::prev(after);
}

void DatasetReader::check_follows(const ShardFile& shard, int64_t first) const {
  const std::string name = shard.path().string();
  if (const auto difference = find_difference(shard.header().info, info_))
    throw UserError(fmt::format(
        "{}: made with {}, {} with {}; the shards are of different runs, distill into an empty "
        "folder",
        name, difference->left, shard_name(0), difference->right));
  if (shard.header().first != first)
    throw UserError(fmt::format(
        "{}: begins with prompt {}, expected prompt {}; the shards are of different runs or were "
        "renamed, distill into an empty folder",
        name, shard.header().first, first));
  if (!shards_.empty() && shards_.back().header().last)
    throw UserError(fmt::format(
        "{}: stands behind {}, which says it is the last; the shards are of different runs, "
        "distill into an empty folder",
        name, shards_.back().path().filename().string()));
}

void DatasetReader::take(ShardFile& shard, size_t number) {
  ShardSamples samples = shard.take_samples();
  const int64_t begin = offsets_.back();
  for (size_t i = 0; i < samples.answer_start.size(); ++i) {
    offsets_.push_back(begin + samples.offsets[i + 1]);
    const bool recorded =
        info_.hidden_size > 0 && samples.hidden_offsets[i + 1] > samples.hidden_offsets[i];
    hidden_rows_.push_back({number, recorded ? samples.hidden_offsets[i] : -1});
    num_hidden_ += recorded ? 1 : 0;
  }
  tokens_.insert(tokens_.end(), samples.tokens.begin(), samples.tokens.end());
  answer_starts_.insert(answer_starts_.end(), samples.answer_start.begin(),
                        samples.answer_start.end());
  for (auto& id : samples.prompt_id) prompt_ids_.push_back(std::move(id));
}

std::string DatasetReader::compute_fingerprint() const {
  Fingerprint fingerprint;
  for (int64_t i = 0; i < size(); ++i) {
    const auto ids = tokens(i);
    fingerprint.add(static_cast<int64_t>(prompt_id(i).size())).add(prompt_id(i));
    fingerprint.add(answer_start(i)).add(static_cast<int64_t>(ids.size()));
    fingerprint.add({reinterpret_cast<const uint8_t*>(ids.data()), ids.size_bytes()});
  }
  return fingerprint.digest();
}

std::span<const TokenId> DatasetReader::tokens(int64_t i) const {
  MEDUSA_ASSERT(i >= 0 && i < size(), i, size());
  const auto begin = static_cast<size_t>(offsets_[static_cast<size_t>(i)]);
  const auto end = static_cast<size_t>(offsets_[static_cast<size_t>(i) + 1]);
  return std::span(tokens_).subspan(begin, end - begin);
}

int64_t DatasetReader::num_hidden_tokens() const {
  int64_t sum = 0;
  for (int64_t i = 0; i < size(); ++i)
    if (has_hidden(i)) sum += std::ssize(answer(i));
  return sum;
}

void DatasetReader::read_hidden(int64_t i, std::span<uint16_t> out) const {
  MEDUSA_ASSERT(i >= 0 && i < size() && has_hidden(i), i, size());
  const auto expected = answer(i).size() * static_cast<size_t>(info_.hidden_size);
  MEDUSA_ASSERT(out.size() == expected, i, out.size(), expected);
  const HiddenRows& rows = hidden_rows_[static_cast<size_t>(i)];
  shards_[rows.shard].read_hidden(rows.first, out);
}

}  // namespace medusa
