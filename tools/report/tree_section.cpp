// The choice tree, and why it has the size it has.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/report/report.h"
#include "tools/report/svg_plot.h"
#include "tools/report/tree_picture.h"

namespace medusa {
namespace {

std::string tree_figure(const ChoiceTree& tree) {
  if (tree.num_nodes() == 1)
    return paragraph(
        "The root alone: here no tree gave more tokens per second than plain decoding.");
  const bool counted = !path_shares(tree).empty();
  std::string caption =
      "Each node is one draft: the number is its rank in its head's list, 0 being the most "
      "probable. A path from the root is a continuation that one pass of the model checks.";
  caption += counted ? " Larger and stronger colored nodes were right more often."
                     : " The tree was not calibrated here: how often its paths are right is not "
                       "known.";
  return figure("The tree", draw_tree(tree, 1020, true), draw_tree(tree, 330, false), caption);
}

std::string frequent_paths(const ChoiceTree& tree) {
  const std::vector<double> shares = path_shares(tree);
  if (shares.empty()) return {};
  std::vector<size_t> order;
  for (size_t i = 0; i < tree.paths.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a + 1] > shares[b + 1]; });
  HtmlTable out{{"path of ranks", "all its drafts right"}, {}};
  for (const size_t i : order)
    out.rows.push_back({path_text(tree.paths[i]), percent(shares[i + 1])});
  return details_block("All paths with their frequencies", table(out));
}

/// A plot over the tree's size with the chosen size marked.
std::string size_plot(const ChoiceTree& tree, const std::string& y_label, const std::string& unit,
                      int color, double (*value)(const TreeSizePoint&), double width) {
  Plot plot;
  plot.description = y_label + " against the size of the tree";
  plot.x_label = "nodes of the tree, N";
  plot.y_label = y_label;
  plot.y_from_zero = true;
  PlotSeries series{.name = {}, .color = color, .line = {}, .dots = {}};
  for (const TreeSizePoint& size : tree.calibration->sizes) {
    series.line.push_back({static_cast<double>(size.num_nodes), value(size)});
    if (size.num_nodes == tree.num_nodes()) {
      plot.chosen = series.line.back();
      plot.chosen_label = fmt::format("N = {}: {:.1f} {}", size.num_nodes, value(size), unit);
    }
  }
  plot.series = {series};
  return draw_plot(plot, width, width > 400 ? 290 : 250);
}

double step_ms(const TreeSizePoint& size) { return size.step_ms; }
double tokens_per_s(const TreeSizePoint& size) {
  return size.step_ms > 0 ? 1000 * size.tokens_per_step / size.step_ms : 0;
}

std::string size_figures(const ChoiceTree& tree) {
  const auto speed = [&](double width) {
    return size_plot(tree, "expected speed (tokens/s)", "tokens/s", 0, tokens_per_s, width);
  };
  const auto time = [&](double width) {
    return size_plot(tree, "time of a step, t(N) (ms)", "ms", 1, step_ms, width);
  };
  return "<div class=\"pair\">\n" +
         figure("Speed by tree size", speed(490), speed(330),
                "Tokens per step of the best tree of N nodes ÷ t(N). The marked tree was chosen.") +
         figure("Time of a step by tree size", time(490), time(330),
                fmt::format("Propose, verify, accept and commit, behind {} tokens of context.",
                            grouped(tree.calibration->context))) +
         "</div>\n";
}

std::string typical_plot(const TypicalSweep& sweep, double width) {
  Plot plot;
  plot.description = "speed-up of typical acceptance against the surprisal of its texts";
  plot.x_is_count = false;
  plot.x_label = "surprisal of the text (nats per token)";
  plot.y_label = "times plain sampling";
  PlotSeries typical{.name = {}, .color = 0, .line = {}, .dots = {}};
  for (const TypicalPoint& point : sweep.points)
    typical.dots.push_back({point.surprisal.value, point.speedup.value});
  const PlotSeries plain{
      .name = "plain sampling", .color = 1, .line = {}, .dots = {{sweep.plain_surprisal.value, 1}}};
  const TypicalPoint& chosen = sweep.points[sweep.chosen];
  plot.chosen = typical.dots[sweep.chosen];
  plot.chosen_label = fmt::format("ε {:.2f}, δ {:.2f}: {:.2f} times", chosen.epsilon, chosen.delta,
                                  chosen.speedup.value);
  plot.series = {typical, plain};
  return draw_plot(plot, width, width > 400 ? 290 : 250);
}

/// What typical acceptance gave and cost with each pair of thresholds.
std::string typical_figures(const TypicalSweep& sweep) {
  HtmlTable rows{{"ε", "δ", "times plain sampling", "nats per token", "KL, nats", "same draw"}, {}};
  const auto estimate = [](const Estimate& each) {
    return fmt::format("{:.2f} ({:.2f}–{:.2f})", each.value, each.low, each.high);
  };
  for (const TypicalPoint& point : sweep.points)
    rows.rows.push_back({fmt::format("{:.2f}", point.epsilon), fmt::format("{:.2f}", point.delta),
                         estimate(point.speedup), estimate(point.surprisal),
                         fmt::format("{:.3f}", point.kl), percent(point.agreement)});
  return figure("Typical acceptance by its thresholds", typical_plot(sweep, 1020),
                typical_plot(sweep, 330),
                fmt::format("Each dot is a pair of thresholds, at temperature {:.2g}. Left: texts "
                            "that the model finds more probable than samples of its own ({:.2f} "
                            "nats). The marked pair decodes where no thresholds are named.",
                            sweep.temperature, sweep.plain_surprisal.value)) +
         details_block("All thresholds", table(rows));
}

std::string summary(const ChoiceTree& tree) {
  std::string text = fmt::format("{} node{} with the root, {} head{} deep, ranks below {}.",
                                 tree.num_nodes(), tree.num_nodes() == 1 ? "" : "s", tree.depth(),
                                 tree.depth() == 1 ? "" : "s", tree.top_k);
  if (!tree.source.empty()) text += " Imported: " + tree.source + ".";
  if (tree.calibration) {
    text += fmt::format(" Counted at {} positions of {} validation answers",
                        grouped(tree.calibration->num_positions),
                        grouped(tree.calibration->num_answers));
    text +=
        tree.calibration->machine.empty() ? "." : "; timed on " + tree.calibration->machine + ".";
  }
  return paragraph(text);
}

}  // namespace

std::string tree_section(const ReportInputs& inputs) {
  if (!inputs.tree.value)
    return section("tree", "Choice tree", paragraph(inputs.tree.absence, "absent"));
  const ChoiceTree& tree = *inputs.tree.value;
  std::string body = summary(tree) + tree_figure(tree) + frequent_paths(tree);
  if (tree.calibration && !tree.calibration->sizes.empty()) body += size_figures(tree);
  if (tree.typical) body += typical_figures(*tree.typical);
  return section("tree", "Choice tree", body);
}

}  // namespace medusa
