#include "data/dataset/dataset_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "data/dataset/shard_file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// A shard that is there already must be exactly what this run would write in its place.
void check_same_run(const ShardFile& shard, const ShardHeader& expected) {
  const ShardHeader& found = shard.header();
  const auto fail = [&](const std::string& made_with, const std::string& ours) {
    throw UserError(fmt::format(
        "{}: made with {}, this run has {}; choose another output folder or remove this one",
        shard.path().string(), made_with, ours));
  };
  if (const auto difference = find_difference(found.info, expected.info))
    fail(difference->left, difference->right);
  if (found.total != expected.total)
    fail(fmt::format("{} prompts", found.total), fmt::format("{}", expected.total));
  if (found.first != expected.first || found.count != expected.count)
    fail(fmt::format("prompts {} to {} in it", found.first, found.first + found.count - 1),
         fmt::format("{} to {} there", expected.first, expected.first + expected.count - 1));
}

}  // namespace

DatasetWriter::DatasetWriter(fs::path folder, DatasetInfo info, int64_t num_samples,
                             int64_t shard_size, int64_t max_answer_tokens)
    : folder_(std::move(folder)),
      info_(std::move(info)),
      num_samples_(num_samples),
      shard_size_(shard_size),
      max_answer_tokens_(max_answer_tokens) {
  MEDUSA_ASSERT(max_answer_tokens >= 0, max_answer_tokens);
  open();
}

DatasetWriter::DatasetWriter(fs::path folder, DatasetInfo info, int64_t num_samples,
                             int64_t shard_size, const DatasetPart& part)
    : folder_(std::move(folder)),
      info_(std::move(info)),
      num_samples_(num_samples),
      shard_size_(shard_size),
      part_(part) {
  MEDUSA_ASSERT(part.index >= 0 && part.index < part.count, part.index, part.count);
  open();
}

void DatasetWriter::open() {
  MEDUSA_ASSERT(num_samples_ > 0 && shard_size_ > 0, num_samples_, shard_size_);
  make_folder(folder_);
  remove_leftovers();
  open_finalized();
  finalize_complete_shards();  // counts what is there
}

int64_t DatasetWriter::num_own_samples() const {
  int64_t count = 0;
  for (int64_t shard = part_.index; shard < num_shards(); shard += part_.count)
    count += count_of(shard);
  return count;
}

int64_t DatasetWriter::count_of(int64_t shard) const {
  return std::min(shard_size_, num_samples_ - shard * shard_size_);
}

/// Whether the dataset ends with the shard, given the answer tokens up to and with it.
bool DatasetWriter::ends_at(int64_t shard, int64_t answer_tokens) const {
  return shard + 1 == num_shards() ||
         (max_answer_tokens_ > 0 && answer_tokens >= max_answer_tokens_);
}

void DatasetWriter::remove_leftovers() const {
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("shard-", 0) != 0 || name.find(".h5.part-") == std::string::npos) continue;
    std::error_code ignored;  // a part that stays does no harm: readers do not look at it
    fs::remove(entry.path(), ignored);
  }
}

void DatasetWriter::open_finalized() {
  for (const auto& [number, path] : find_shards(folder_)) {
    const ShardFile shard(path);
    if (number >= num_shards())
      throw UserError(fmt::format(
          "{}: the dataset of this run has only {} shards; choose another output folder or remove "
          "this one",
          path.string(), num_shards()));
    if (!owns(number))
      throw UserError(fmt::format(
          "{}: is not a shard of part {}/{}; choose another output folder or remove this one",
          path.string(), part_.index, part_.count));
    check_same_run(shard, {info_, number * shard_size_, count_of(number), num_samples_, false});
    finalized_[number] = {shard.samples().size(), shard.samples().num_answer_tokens(),
                          shard.hidden_rows(), shard.header().last};
  }
}

bool DatasetWriter::has(int64_t i) const {
  MEDUSA_ASSERT(i >= 0 && i < num_samples_, i, num_samples_);
  const int64_t shard = i / shard_size_;
  return complete_ || !owns(shard) || finalized_.count(shard) > 0;
}

void DatasetWriter::add(int64_t i, Sample sample) {
  MEDUSA_ASSERT(!has(i), i);
  const int64_t answer_tokens = std::max<int64_t>(sample.answer_length(), 0);
  const auto hidden = static_cast<int64_t>(sample.hidden.size());
  MEDUSA_ASSERT(answer_tokens == 0 || sample.answer_start >= 1, i, sample.answer_start);
  MEDUSA_ASSERT(hidden == answer_tokens * info_.hidden_size, i, hidden, answer_tokens);
  if (states_are_used_up()) sample.hidden = {};  // their memory, now
  for (const TokenId token : sample.tokens)
    MEDUSA_ASSERT(token >= 0 && token < info_.vocab_size, i, token, info_.vocab_size);
  const bool added = open_[i / shard_size_].emplace(i, std::move(sample)).second;
  MEDUSA_ASSERT(added, i);
  finalize_complete_shards();
}

void DatasetWriter::finalize_complete_shards() {
  for (; !complete_; ++next_) {
    if (next_ == num_shards()) {  // of other parts were the last ones
      complete_ = true;
      break;
    }
    if (!owns(next_)) continue;
    auto finalized = finalized_.find(next_);
    if (finalized == finalized_.end()) {
      const auto open = open_.find(next_);
      if (open == open_.end() || static_cast<int64_t>(open->second.size()) < count_of(next_))
        return;
      finalized = finalized_.emplace(next_, finalize(next_)).first;
      open_.erase(open);
    }
    const Finalized& shard = finalized->second;
    num_stored_ += shard.samples;
    num_answer_tokens_ += shard.answer_tokens;
    num_state_rows_ += shard.state_rows;
    if (shard.last != ends_at(next_, num_answer_tokens_))
      throw UserError(fmt::format(
          "{}: made with another limit of answer tokens than this run's {}; choose another output "
          "folder or remove this one",
          (folder_ / shard_name(next_)).string(), max_answer_tokens_));
    complete_ = shard.last;
  }
  open_.clear();  // behind the end
}

bool DatasetWriter::fits_budget(int64_t state_rows) const {
  return info_.states_budget == 0 ||
         state_rows * state_row_bytes(info_.states, info_.hidden_size) <= info_.states_budget;
}

DatasetWriter::Finalized DatasetWriter::finalize(int64_t shard) {
  ShardSamples samples;
  bool recorded = info_.hidden_size > 0 && !states_are_used_up();
  for (auto& [i, sample] : open_[shard]) {
    const int64_t rows = samples.hidden_offsets.back() + sample.answer_length();
    recorded = recorded && fits_budget(num_state_rows_ + rows);
    if (!recorded) sample.hidden = {};
    if (sample.answer_length() > 0) samples.append(sample);
    sample = {};  // its memory, before the file is built in memory
  }
  const int64_t answer_tokens = samples.num_answer_tokens();
  const bool last = ends_at(shard, num_answer_tokens_ + answer_tokens);
  const ShardHeader header{info_, shard * shard_size_, count_of(shard), num_samples_, last};
  write_file(folder_ / shard_name(shard), encode_shard(header, samples));
  return {samples.size(), answer_tokens, samples.hidden_offsets.back(), last};
}

}  // namespace medusa
