// The numbers that matter, large.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/report.h"

namespace medusa {
namespace {

/// What a reader asks for first: the method that promises the same text, else the first that
/// speculates at all.
const ReportedMethod* main_method(const ReportedComparison& comparison) {
  const ReportedMethod* chosen = nullptr;
  for (const ReportedMethod& method : comparison.methods)
    if (!method.plain() && (chosen == nullptr || (!chosen->same_text && method.same_text)))
      chosen = &method;
  return chosen;
}

std::string expectation(const ReportInputs& inputs) {
  if (!inputs.tree.value || !inputs.tree.value->expected_tokens_per_step) return "";
  const Estimate& expected = *inputs.tree.value->expected_tokens_per_step;
  return fmt::format("calibration expected {:.2f} (95 %: {:.2f} to {:.2f})", expected.value,
                     expected.low, expected.high);
}

std::vector<Tile> measured_tiles(const ReportInputs& inputs) {
  const ReportedComparison& comparison = *inputs.comparison.value;
  const ReportedMethod* method = main_method(comparison);
  if (method == nullptr) return {};
  const auto plain = std::find_if(comparison.methods.begin(), comparison.methods.end(),
                                  [](const ReportedMethod& each) { return each.plain(); });
  std::vector<Tile> tiles;
  tiles.push_back({fmt::format("{:.2f}", method->speedup), "×", "speed-up over plain decoding",
                   method->speedup_95
                       ? fmt::format("95 %: {:.2f} to {:.2f} ×", method->speedup_95->first,
                                     method->speedup_95->second)
                       : method->name()});
  tiles.push_back({fmt::format("{:.1f}", method->tokens_per_s), "tokens/s",
                   "with " + method->name() + " decoding",
                   plain == comparison.methods.end()
                       ? ""
                       : fmt::format("plain: {:.1f} tokens/s", plain->tokens_per_s)});
  tiles.push_back({fmt::format("{:.2f}", method->tokens_per_step), "tokens/step",
                   "emitted by each pass of the model", expectation(inputs)});
  tiles.push_back({fmt::format("{:.2f}", method->step_overhead), "×", "step overhead",
                   "time of a step ÷ time of a plain step"});
  if (method->same_text)
    tiles.push_back({fmt::format("{} / {}", *method->same_text, method->num_prompts), "prompts",
                     "same text as plain decoding", "token for token"});
  return tiles;
}

/// Before these heads were compared: what calibration expects.
std::vector<Tile> expected_tiles(const ReportInputs& inputs) {
  std::vector<Tile> tiles;
  if (!inputs.tree.value) return tiles;
  const ChoiceTree& tree = *inputs.tree.value;
  tiles.push_back({std::to_string(tree.num_nodes()), "nodes", "in the choice tree",
                   fmt::format("{} heads deep", tree.depth())});
  if (tree.expected_tokens_per_step)
    tiles.push_back({fmt::format("{:.2f}", tree.expected_tokens_per_step->value), "tokens/step",
                     "expected on validation text",
                     fmt::format("95 %: {:.2f} to {:.2f}", tree.expected_tokens_per_step->low,
                                 tree.expected_tokens_per_step->high)});
  return tiles;
}

}  // namespace

std::string headline_section(const ReportInputs& inputs) {
  const bool measured = inputs.comparison.value && !compares_other_heads(inputs);
  return tiles_html(measured ? measured_tiles(inputs) : expected_tiles(inputs));
}

}  // namespace medusa
