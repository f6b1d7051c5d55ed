#include "train/record/checkpoint_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/replace_folder.h"
#include "train/processes/data_parallel.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLast = "checkpoint";
constexpr std::string_view kNumbered = "checkpoint-";
constexpr size_t kMostDigits = 18;  // fits 64 bits

/// The second name of a file, or a copy where the file system has none.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::create_hard_link(from, to, failed);
  if (failed) copy_whole_file(from, to);
}

/// Ends or removes what a run that was killed left half-written (base/replace_folder.h).
void finish_replacements(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.rfind(".partial");
    if (name.starts_with(kLast) && end != std::string::npos) names.insert(name.substr(0, end));
  }
  for (const std::string& name : names) finish_replacement(folder / name);
}

/// A checksum is no secret: whoever alters a checkpoint may make that, too.
void check_steps(const fs::path& checkpoint, int64_t done, int64_t num_steps) {
  if (done <= num_steps) return;
  throw UserError(fmt::format(
      "{}: the checkpoint was made after {} steps, this run has {}, expected at most as many; put "
      "a good copy in its place, or train anew with --fresh",
      checkpoint.string(), done, num_steps));
}

/// Steps of the checkpoint-<step> folders.
std::map<int64_t, fs::path> numbered_in(const fs::path& folder) {
  std::map<int64_t, fs::path> out;
  if (!fs::is_directory(folder)) return out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string digits = name.starts_with(kNumbered) ? name.substr(kNumbered.size()) : "";
    if (!digits.empty() && digits.size() <= kMostDigits &&
        digits.find_first_not_of("0123456789") == std::string::npos)
      out[std::stoll(digits)] = entry.path();
  }
  return out;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, RunIdentity identity, NamedTensors parameters,
                                 AdamW& optimizer, int64_t keep, ProcessGroup* group)
    : folder_(std::move(folder)),
      identity_(std::move(identity)),
      parameters_(std::move(parameters)),
      optimizer_(optimizer),
      keep_(keep),
      group_(group) {
  MEDUSA_ASSERT(keep >= 1, keep);
}

fs::path CheckpointStore::numbered(int64_t step) const {
  return folder_ / fmt::format("{}{:08}", kNumbered, step);
}

bool CheckpointStore::holds_last(const fs::path& folder) const {
  constexpr const char* kFile = "checkpoint.yaml";
  return folder_is_done(folder) && read_file(folder / kFile) == read_file(last() / kFile);
}

bool CheckpointStore::has_one() const { return folder_is_done(last()); }

int64_t CheckpointStore::load(int64_t num_steps) {
  if (group_ != nullptr)
    group_->check_same(fmt::format("{}", fmt::join(identity_.entries(), "\n")),
                       "has other settings or another dataset",
                       "give all of them the same command, files and version");
  if (is_first(group_)) {
    finish_replacements(folder_);
    const int64_t done = load_checkpoint(last(), identity_, parameters_, optimizer_, &notes_);
    check_steps(last(), done, num_steps);
    if (done == 0)
      remove_folder(best());
    else if (has_checkpoint(best()))  // a damaged one is found now, not at the end
      check_steps(best(), read_checkpoint(best()).step, num_steps);
    // A kill may have come between the last one and its second name.
    if (done > 0) keep_last_ones();
  }
  take_state_of_first(group_, parameters_, optimizer_);
  return optimizer_.num_steps();
}

void CheckpointStore::save(const std::vector<double>& unreported) {
  check_same_parameters(group_, parameters_, optimizer_.num_steps());
  if (!is_first(group_)) return;
  notes_ = {0, unreported, std::max(notes_.best_tokens_per_step, best_score())};
  save_checkpoint(last(), identity_, parameters_, optimizer_, notes_);
  keep_last_ones();
}

void CheckpointStore::keep_last_ones() const {
  if (keep_ > 1 && !holds_last(numbered(optimizer_.num_steps())))
    replace_folder(numbered(optimizer_.num_steps()), [&](const fs::path& fresh) {
      for (const auto& entry : fs::directory_iterator(last()))
        if (entry.path().filename() != "DONE")
          link_or_copy(entry.path(), fresh / entry.path().filename());
    });
  auto all = numbered_in(folder_);
  // Of a run that went back and takes these steps again.
  all.erase(all.upper_bound(optimizer_.num_steps()), all.end());
  for (; std::ssize(all) > (keep_ > 1 ? keep_ : 0); all.erase(all.begin()))
    remove_folder(all.begin()->second);
}

double CheckpointStore::best_score() const { return checkpoint_score(best()).value_or(0); }

void CheckpointStore::check_best() const {
  MEDUSA_ASSERT(is_first(group_));
  const double expected = notes_.best_tokens_per_step, found = best_score();
  if (found >= expected) return;
  throw UserError(fmt::format(
      "{}: found {}, expected that of {:.3f} tokens per step, which {} tells of; put a copy of it "
      "in its place, or train anew with --fresh",
      best().string(),
      has_checkpoint(best()) ? fmt::format("a checkpoint of {:.3f} tokens per step", found)
                             : "no checkpoint",
      expected, last().string()));
}

void CheckpointStore::offer(double tokens_per_step) {
  MEDUSA_ASSERT(is_first(group_));
  if (const auto before = checkpoint_score(best()); before && *before >= tokens_per_step) return;
  save_checkpoint(best(), identity_, parameters_, optimizer_, {tokens_per_step, {}, 0});
}

std::optional<int64_t> CheckpointStore::load_best() {
  constexpr int64_t kNone = -1;
  int64_t step = kNone;
  if (is_first(group_) && has_checkpoint(best()))
    step = load_parameters(best(), identity_, parameters_);
  step = value_of_first(group_, step);
  if (step == kNone) return std::nullopt;
  broadcast_parameters(group_, parameters_);
  return step;
}

}  // namespace medusa
