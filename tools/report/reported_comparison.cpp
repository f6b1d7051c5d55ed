#include "tools/report/reported_comparison.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace {

using nlohmann::json;

/// A key that may be missing or null.
template <typename T>
T value_or(const json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->get<T>();
}

ReportedMethod read_method(const json& row) {
  ReportedMethod method;
  method.drafter = row.at("drafter").get<std::string>();
  method.rule = row.at("rule").get<std::string>();
  method.temperature = value_or(row, "temperature", 0.0);
  method.tokens_per_s = row.at("tokens_per_s").get<double>();
  method.tokens_per_step = row.at("tokens_per_step").get<double>();
  method.step_overhead = row.at("step_overhead").get<double>();
  method.speedup = row.at("speedup").get<double>();
  method.num_prompts = row.at("num_prompts").get<int64_t>();
  if (!method.plain() && row.contains("same_text") && row["same_text"].is_number_integer())
    method.same_text = row["same_text"].get<int64_t>();
  if (const auto range = value_or<std::vector<double>>(row, "speedup_95", {}); range.size() == 2)
    method.speedup_95 = {range[0], range[1]};
  method.emitted_per_step = value_or<std::vector<int64_t>>(row, "emitted_per_step", {});
  const json times = value_or<json>(row, "times", json::object());
  for (const char* phase : {"propose", "verify", "accept", "commit"})
    if (const double seconds = value_or(times, (std::string(phase) + "_s").c_str(), -1.0);
        seconds >= 0 && method.num_steps() > 0)
      method.phase_ms.emplace_back(phase, 1000 * seconds / static_cast<double>(method.num_steps()));
  return method;
}

ReportedAnswer read_answer(const json& row) {
  ReportedAnswer answer{row.at("method").get<std::string>(), row.at("seconds").get<double>(), {}};
  for (const json& step : row.at("steps"))
    answer.steps.push_back({step.at(0).get<int64_t>(), step.at(1).get<std::string>()});
  return answer;
}

}  // namespace

std::string method_name(const std::string& drafter, const std::string& rule, double temperature) {
  return (drafter == "none" ? "plain" : drafter + ", " + rule) +
         (temperature > 0 ? fmt::format(" at {}", temperature) : "");
}

int64_t ReportedMethod::num_steps() const {
  int64_t steps = 0;
  for (const int64_t count : emitted_per_step) steps += count;
  return steps;
}

ReportedComparison read_comparison(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    const json root = json::parse(text);
    ReportedComparison out;
    for (const json& row : root.at("methods")) {
      out.methods.push_back(read_method(row));
      if (out.dtype.empty()) out.dtype = value_or<std::string>(row, "dtype", "");
    }
    out.complete = value_or(root, "complete", true);
    out.machine =
        value_or<std::string>(value_or<json>(root, "machine", json::object()), "description", "");
    out.date = value_or<std::string>(root, "date", "");
    out.version = value_or<std::string>(root, "version", "");
    const json example = value_or<json>(root, "example", json::object());
    out.question = value_or<std::string>(example, "question", "");
    for (const json& row : value_or<json>(example, "answers", json::array()))
      out.answers.push_back(read_answer(row));
    const json settings = value_or<json>(root, "settings", json::object());
    out.settings = value_or<std::string>(settings, "yaml", "");
    out.backbone = value_or<std::string>(settings, "backbone", "");
    out.heads = value_or<std::string>(settings, "heads", "");
    return out;
  } catch (const json::exception& error) {
    throw UserError(fmt::format(
        "{}: {}, expected the comparison that medusa writes; run medusa generate --compare again",
        file.string(), json_error_text(error.what())));
  }
}

}  // namespace medusa
