#include "train/record/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace {

nlohmann::json column(const std::vector<HeadQuality>& heads, double HeadQuality::*member) {
  auto values = nlohmann::json::array();
  for (const HeadQuality& head : heads) values.push_back(head.*member);
  return values;
}

/// Every number of a report under its name, those of heads by number: "train/top_1/head_0".
Scalars scalars_of(const nlohmann::ordered_json& report) {
  Scalars out;
  const auto kind = report.at("kind").get<std::string>();
  for (const auto& [name, value] : report.items()) {
    const std::string tag = kind + "/" + name;
    if (value.is_array())
      for (size_t head = 0; head < value.size(); ++head)
        out.emplace_back(fmt::format("{}/head_{}", tag, head), value[head].get<double>());
    else if (value.is_number() && name != "step")
      out.emplace_back(tag, value.get<double>());
  }
  return out;
}

}  // namespace

/// The whole lines of reports up to this step.
MetricsLog::Kept MetricsLog::lines_up_to(const std::filesystem::path& file, int64_t step) {
  Kept kept;
  if (step <= 0 || !std::filesystem::exists(file)) return kept;
  const std::string text = read_file(file);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // cut off by a crash
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("kind") || !json["kind"].is_string() ||
        !json.contains("step") || !json["step"].is_number_integer() ||
        json["step"].get<int64_t>() > step)
      continue;
    kept.lines += line + "\n";
    kept.reports.emplace(json["kind"], json["step"]);
  }
  return kept;
}

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t step, Reported reported)
    : MetricsLog(file, step, std::move(reported), lines_up_to(file, step)) {}

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t step, Reported reported,
                       Kept kept)
    : kept_(std::move(kept.reports)),
      lines_(file, kept.lines),
      events_(file.parent_path() / EventFile::kName, step),
      reported_(std::move(reported)) {}

void MetricsLog::add(const Metrics& metrics) {
  nlohmann::ordered_json json{{"kind", metrics.kind},
                              {"step", metrics.step},
                              {"epoch", metrics.epoch},
                              {"loss_nats", metrics.loss},
                              {"head_loss_nats", column(metrics.heads, &HeadQuality::loss)},
                              {"top_1", column(metrics.heads, &HeadQuality::top_1)},
                              {"top_5", column(metrics.heads, &HeadQuality::top_5)},
                              {"top_10", column(metrics.heads, &HeadQuality::top_10)},
                              {"positions", metrics.positions},
                              {"elapsed_s", metrics.elapsed_s}};
  if (metrics.kind == "train") {
    json["learning_rate"] = metrics.learning_rate;
    json["gradient_norm"] = metrics.gradient_norm;
    json["positions_per_s"] = metrics.positions_per_s;
    json["memory_bytes"] = metrics.memory_bytes;
  }
  for (const auto& [name, value] : metrics.more) json[name] = value;
  if (!has(metrics.kind, metrics.step)) lines_.add(json_text(json) + "\n");
  events_.add(metrics.step, scalars_of(json));
  if (reported_) reported_(metrics);
}

void MetricsLog::flush() {
  lines_.flush();
  events_.flush();
}

}  // namespace medusa
