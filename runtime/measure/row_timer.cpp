#include "runtime/measure/row_timer.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "infer/backbone_target.h"
#include "runtime/measure/interleave.h"
#include "runtime/measure/step_timer.h"

namespace medusa {
namespace {

constexpr int64_t kContext = 256;  // tokens before the timed steps
constexpr int kRowRepeats = 4;

}  // namespace

std::vector<double> time_rows(Llama& llama) {
  const int64_t context =
      std::max<int64_t>(1, std::min(kContext, llama.config().context - kTimedRows.back()));
  BackboneTarget target(llama, 1, context + kTimedRows.back());
  StepTimer timer(target, std::vector<TokenId>(static_cast<size_t>(context) + 1, 0));
  std::vector<std::vector<double>> samples(kTimedRows.size());
  const auto step = [&](size_t i) {
    return timer
        .time([&](const DraftContext& draft) {
          return timed_chain(draft.tokens.back(), kTimedRows[i]);
        })
        .total();
  };
  interleave(kTimedRows.size(), kRowRepeats, step, [&](size_t i, double ms) {
    samples[i].push_back(ms);
    stop_if_interrupted();
    return true;
  });
  return ascending_rows_ms(std::move(samples));
}

StepCost relative_cost(std::span<const double> rows_ms) {
  StepCost cost;
  for (const double ms : rows_ms) cost.relative.push_back(ms / rows_ms.front());
  return cost;
}

StepCost calibrated_cost(const TreeCalibration& calibration, int32_t num_nodes) {
  StepCost cost = relative_cost(calibration.rows_ms);
  const auto row = static_cast<size_t>(num_nodes) - 1;
  if (row < calibration.drafting_ms.size()) {
    cost.drafting = calibration.drafting_ms[row] / calibration.rows_ms.front();
    return cost;
  }
  if (calibration.sizes.empty() || row >= calibration.rows_ms.size()) return cost;
  const double plain = calibration.rows_ms.front();
  for (const TreeSizePoint& size : calibration.sizes)
    if (size.num_nodes == num_nodes)
      cost.drafting = std::max(0.0, size.step_ms - calibration.sizes.front().step_ms -
                                        (calibration.rows_ms[row] - plain)) /
                      plain;
  return cost;
}

std::optional<StepCost> calibrated_here(const ChoiceTree& tree, const Llama& llama) {
  if (!tree.calibration || tree.calibration->machine != machine_text(llama) ||
      tree.calibration->rows_ms.empty())
    return std::nullopt;
  return calibrated_cost(*tree.calibration, tree.num_nodes());
}

StepCost measured_step_cost(const std::filesystem::path& tree_file, const Model& model) {
  if (std::filesystem::exists(tree_file))
    if (auto cost = calibrated_here(read_choice_tree(tree_file), *model.llama))
      return *std::move(cost);
  return relative_cost(time_rows(*model.llama));
}

}  // namespace medusa
