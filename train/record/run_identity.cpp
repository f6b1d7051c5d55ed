#include "train/record/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

constexpr std::string_view kProcesses = "processes";
constexpr std::string_view kThreads = "threads";
constexpr std::string_view kThe = "the ";
constexpr const char* kDtype = "backbone.dtype";

/// "train.epochs=2" -> "train.epochs" and "2".
std::pair<std::string, std::string> split_entry(const std::string& entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string::npos) return {entry, ""};
  return {entry.substr(0, equals), entry.substr(equals + 1)};
}

/// Settings that say how large a step of one process is; in the identity, of all of them.
struct StepSize {
  std::string_view key;
  std::string_view unit;

  std::string spoken(const std::string& size, int64_t processes) const {
    return fmt::format("steps of {} {} ({} {})", size, unit, processes,
                       processes == 1 ? "process" : "processes together");
  }
};

constexpr StepSize kStepSizes[] = {{"train.batch_positions", "positions"},
                                   {"train.joint.accumulate", "batches"}};

/// One thing that a checkpoint was made with, and what this run has instead.
struct Difference {
  std::string key, was, is;
  int64_t processes_were = 1, processes_are = 1;
};

[[noreturn]] void fail_differs(const std::filesystem::path& folder, const Difference& found) {
  for (const StepSize& size : kStepSizes)
    if (found.processes_were + found.processes_are > 2 && found.key == size.key)
      throw UserError(fmt::format(
          "{}: the checkpoint was made with {}, this run has {}, expected the same, as other "
          "steps are another training; set {} so that it times the processes is {}, or train "
          "anew with --fresh",
          folder.string(), size.spoken(found.was, found.processes_were),
          size.spoken(found.is, found.processes_are), size.key, found.was));
  const auto spoken = [&](const std::string& value) {
    if (!value.empty()) return found.key + " " + value;
    if (found.key == kDtype) return found.key + " bfloat16";  // add_dtype()
    return "no " + found.key.substr(found.key.starts_with(kThe) ? kThe.size() : 0);
  };
  throw UserError(
      fmt::format("{}: the checkpoint was made with {}, this run has {}, expected the same; set "
                  "it back to continue, or train anew with --fresh",
                  folder.string(), spoken(found.was), spoken(found.is)));
}

}  // namespace

RunIdentity::RunIdentity(std::initializer_list<std::string> entries) {
  for (const std::string& entry : entries) {
    const auto [key, value] = split_entry(entry);
    add(key, value);
  }
}

void RunIdentity::add(const std::string& key, const std::string& value) {
  entries_.push_back({key, value, ""});
}

void RunIdentity::add_run(uint64_t seed, const DatasetReader& dataset,
                          const std::string& backbone) {
  add("seed", std::to_string(seed));
  const auto& sources = dataset.sources();
  for (size_t i = 0; i < sources.size(); ++i)
    add(i == 0 ? "the dataset" : fmt::format("dataset {}", i + 1),
        sources[i].fingerprint +
            (sources[i].weight == 1 ? "" : fmt::format(" weight {}", sources[i].weight)));
  add("the backbone", backbone);
}

void RunIdentity::add_dtype(c10::ScalarType dtype) {
  if (dtype != c10::ScalarType::BFloat16) add(kDtype, "float32");
}

void RunIdentity::add_lines(const std::vector<FieldHelp>& lines,
                            const std::vector<FieldHelp>& defaults) {
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i].decides)
      entries_.push_back({lines[i].key, lines[i].value, defaults[i].value});
    else
      silent_.push_back(lines[i].key);
}

std::vector<std::string> RunIdentity::entries() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) out.push_back(entry.key + "=" + entry.value);
  if (processes_ > 1) out.push_back(fmt::format("{}={}", kProcesses, processes_));
  if (threads_ > 0) out.push_back(fmt::format("{}={}", kThreads, threads_));
  return out;
}

std::string RunIdentity::fingerprint() const {
  Fingerprint hash;
  for (const Entry& entry : entries_)
    if (entry.value != entry.otherwise) hash.add(entry.key).add(entry.value);
  return hash.digest();
}

void RunIdentity::check(const std::filesystem::path& folder,
                        const std::vector<std::string>& saved) const {
  std::vector<std::pair<std::string, std::string>> left;  // of the saved ones
  Difference found;
  found.processes_are = processes_;
  for (const std::string& entry : saved) {
    auto [key, value] = split_entry(entry);
    if (key == kProcesses)
      found.processes_were = std::atoll(value.c_str());
    else if (key != kThreads)
      left.emplace_back(std::move(key), std::move(value));
  }
  for (const Entry& entry : entries_) {
    const auto was = std::find_if(left.begin(), left.end(),
                                  [&](const auto& each) { return each.first == entry.key; });
    found.key = entry.key;
    found.was = was == left.end() ? entry.otherwise : was->second;
    found.is = entry.value;
    if (found.was != found.is) fail_differs(folder, found);
    if (was != left.end()) left.erase(was);
  }
  for (const auto& [key, value] : left) {
    if (std::find(silent_.begin(), silent_.end(), key) != silent_.end()) continue;
    found.key = key;
    found.was = value;
    found.is = "";
    fail_differs(folder, found);
  }
}

int64_t threads_in(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries)
    if (const auto [key, value] = split_entry(entry); key == kThreads)
      return std::atoll(value.c_str());
  return 0;
}

}  // namespace medusa
