#include "tools/report/training_curve.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {

TrainingCurve read_training_curve(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  TrainingCurve curve;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // cut off by a kill
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    try {
      const auto json = nlohmann::json::parse(line);
      CurvePoint point;
      point.step = json.at("step").get<int64_t>();
      if (json.at("kind").get<std::string>() == "guard") {
        curve.guard.push_back({point.step, json.at("guard_kl_nats").get<double>(),
                               json.at("guard_perplexity").get<double>(),
                               json.at("guard_original_perplexity").get<double>(),
                               json.at("guard_greedy_match").get<double>()});
        continue;
      }
      point.loss = json.at("loss_nats").get<double>();
      point.head_top_1 = json.at("top_1").get<std::vector<double>>();
      if (json.contains("backbone_loss_nats"))
        point.backbone_loss = json["backbone_loss_nats"].get<double>();
      const bool train = json.at("kind").get<std::string>() == "train";
      (train ? curve.train : curve.validation).push_back(std::move(point));
    } catch (const nlohmann::json::exception& error) {
      throw UserError(fmt::format(
          "{}:{}: {}, expected a report of medusa train; remove the line or train again",
          file.string(), number, json_error_text(error.what())));
    }
  }
  return curve;
}

}  // namespace medusa
