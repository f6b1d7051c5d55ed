#include "server/api/answer_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace medusa {

nlohmann::json acceptance_json(const DecodeStats& stats) {
  const auto ratio = [](int64_t a, int64_t b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  };
  std::vector<int64_t> histogram = stats.accepted_per_step;
  if (histogram.empty()) histogram.push_back(0);  // no step yet
  const size_t depth = histogram.size() - 1;
  return {{"mean_acceptance_length", ratio(stats.emitted, stats.steps)},
          {"draft_acceptance_rate", ratio(stats.accepted, stats.proposed)},
          {"acceptance_histogram", std::move(histogram)},
          {"num_accepted_draft_tokens", stats.accepted},
          {"num_draft_tokens", stats.proposed},
          {"num_spec_steps", stats.steps},
          {"num_spec_tokens", depth}};
}

std::string sent_event(const nlohmann::json& data) { return "data: " + json_text(data) + "\n\n"; }

std::string named_event(const nlohmann::json& data) {
  return "event: " + data.at("type").get_ref<const std::string&>() + "\n" + sent_event(data);
}

}  // namespace medusa
