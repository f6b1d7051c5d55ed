// How backbone and heads were trained together, and how far that led the backbone.
#include <fmt/format.h>

#include "tools/report/html.h"
#include "tools/report/report.h"
#include "tools/report/training_curve.h"

namespace medusa {
namespace {

/// The last thing that the guard said.
std::string last_look(const TrainingCurve& curve) {
  if (curve.guard.empty()) return {};
  const GuardPoint& last = curve.guard.back();
  return paragraph(fmt::format(
      "After {} steps: KL {:.4f} nats, perplexity {:.3f} (was {:.3f}), {} of the greedy "
      "answers the same.",
      grouped(last.step), last.kl, last.perplexity, last.original_perplexity,
      percent(last.greedy_match)));
}

}  // namespace

std::string joint_section(const ReportInputs& inputs) {
  if (!inputs.joint) return {};
  const TrainingCurve& curve = *inputs.joint;
  return section("joint", "Backbone and heads together",
                 last_look(curve) + backbone_figures(curve) + head_figures(curve));
}

}  // namespace medusa
