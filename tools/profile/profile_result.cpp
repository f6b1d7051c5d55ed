#include "tools/profile/profile_result.h"

#include <nlohmann/json.hpp>

namespace medusa {

RooflineShares shares_of(const ProfiledPart& part, const Roofline& roofline) {
  if (part.ms <= 0) return {};
  const double seconds = part.ms / 1000;
  return {part.work.bytes / seconds / roofline.bytes_per_s(),
          part.work.flops / seconds / roofline.flops_per_s};
}

double ProfiledStep::ms() const {
  double sum = 0;
  for (const ProfiledPart& part : parts) sum += part.ms;
  return sum;
}

std::vector<std::vector<const ProfiledStep*>> by_context(const Profile& profile) {
  std::vector<std::vector<const ProfiledStep*>> out;
  for (const ProfiledStep& step : profile.steps) {
    if (out.empty() || out.back().front()->context != step.context) out.emplace_back();
    out.back().push_back(&step);
  }
  return out;
}

nlohmann::ordered_json profile_json(const Profile& profile) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const ProfiledStep& step : profile.steps) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const ProfiledPart& part : step.parts) {
      const RooflineShares shares = shares_of(part, profile.roofline);
      parts.push_back({{"part", part.name},
                       {"ms", part.ms},
                       {"bytes", part.work.bytes},
                       {"flops", part.work.flops},
                       {"share_of_memory_roof", shares.memory},
                       {"share_of_arithmetic_roof", shares.arithmetic}});
    }
    steps.push_back({{"context", step.context},
                     {"rows", step.rows},
                     {"step_ms", step.ms()},
                     {"parts", std::move(parts)}});
    if (step.launches) {
      steps.back()["kernels"] = step.launches->kernels;
      steps.back()["torch_ops"] = step.launches->ops;
    }
  }
  return {{"format", kProfileFormat},
          {"version", 1},
          {"machine", profile.machine},
          {"backbone", profile.backbone},
          {"repeats", profile.repeats},
          {"complete", profile.complete},
          {"drafted", profile.drafted},
          {"roof",
           {{"read_bytes_per_s", profile.roofline.read_bytes_per_s},
            {"copy_bytes_per_s", profile.roofline.copy_bytes_per_s},
            {"flops_per_s", profile.roofline.flops_per_s}}},
          {"steps", std::move(steps)}};
}

}  // namespace medusa
