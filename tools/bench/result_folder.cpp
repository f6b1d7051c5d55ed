#include "tools/bench/result_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "tools/bench/result.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

using nlohmann::json;

json row_json(const BenchRow& row) {
  json out{{"method", row.method},
           {"rule", row.rule},
           {"temperature", row.temperature},
           {"category", row.category.empty() ? json(nullptr) : json(row.category)},
           {"num_questions", row.num_questions},
           {"num_samples", row.num_samples},
           {"tokens_per_s", row.tokens_per_s},
           {"tokens_per_step", row.tokens_per_step},
           {"step_overhead", row.step_overhead},
           {"speedup", row.speedup},
           {"speedup_95", nullptr},
           {"same_text", row.same_text ? json(*row.same_text) : json(nullptr)},
           {"prefill_ms", row.prefill_ms},
           {"peak_bytes", row.peak_bytes},
           {"emitted_per_step", row.emitted_per_step},
           {"step_ms", row.step_total_ms()}};
  if (row.speedup_95) out["speedup_95"] = {row.speedup_95->low, row.speedup_95->high};
  for (size_t part = 0; part < kNumStepParts; ++part)
    out["step_parts_ms"][kStepParts[part]] = row.step_ms[part];
  return out;
}

}  // namespace

json bench_json(const BenchResult& result) {
  json out{{"format", kBenchFormat},
           {"version", 1},
           {"complete", result.complete},
           {"num_questions", result.num_questions},
           {"repeats", result.repeats},
           {"conditions", json::array()},
           {"rows", json::array()},
           {"failed", json::array()},
           {"machine", {{"description", result.machine}}},
           {"settings", {{"yaml", result.settings}}}};
  for (const auto& [name, value] : result.conditions)
    out["conditions"].push_back({{"name", name}, {"value", value}});
  for (const BenchRow& row : result.rows) out["rows"].push_back(row_json(row));
  for (const FailedMethod& each : result.failed)
    out["failed"].push_back(
        {{"method", each.method}, {"temperature", each.temperature}, {"reason", each.reason}});
  return out;
}

BenchFolder::BenchFolder(std::filesystem::path folder, const Conditions& of_all,
                         const Conditions& of_methods, bool fresh)
    : folder_(std::move(folder)), conditions_(of_all) {
  conditions_.insert(conditions_.end(), of_methods.begin(), of_methods.end());
  make_folder(folder_);
  check_output_file(json(), ArtifactKind::Bench);
  check_output_file(answers(), ArtifactKind::BenchAnswers);
  check_output_file(page(), ArtifactKind::Page);
  if (fresh || !std::filesystem::exists(json())) return;
  const Conditions earlier = read_conditions(json());
  check_comparable(json(), earlier, of_all);
  conditions_ = joined_conditions(json(), earlier, conditions_);
  earlier_ = read_samples(answers());
  for (const BenchSample& sample : earlier_) next_run_ = std::max(next_run_, sample.run + 1);
}

std::vector<BenchSample> BenchFolder::combined(const std::vector<BenchSample>& newer,
                                               bool complete) const {
  std::vector<BenchSample> all = complete ? without_replaced(earlier_, newer) : earlier_;
  all.insert(all.end(), newer.begin(), newer.end());
  return all;
}

void BenchFolder::write(const BenchResult& result, const std::vector<BenchSample>& samples) const {
  write_samples(answers(), samples);
  write_file(json(), json_text(bench_json(result), 1) + "\n");
  write_file(page(), bench_page(result, frame_of(folder_, page().filename().string())));
}

}  // namespace medusa
