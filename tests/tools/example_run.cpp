#include "tests/tools/example_run.h"

#include <algorithm>
#include <cmath>

namespace medusa::fixtures {
namespace {

constexpr int64_t kPositions = 18250;
const std::vector<double> kFirstDraft = {0.421, 0.243, 0.162, 0.118};  // by head

/// Share of positions at which head k's draft of that rank is right.
double accuracy(size_t head, int32_t rank) {
  return rank == 0 ? kFirstDraft[head]
                   : 0.32 * kFirstDraft[head] / std::pow(static_cast<double>(rank), 1.15);
}

std::vector<PathCount> best_paths(int32_t count) {
  struct Candidate {
    RankPath path;
    double share;
  };
  std::vector<Candidate> open, chosen;
  for (int32_t rank = 0; rank < 10; ++rank) open.push_back({{rank}, accuracy(0, rank)});
  while (static_cast<int32_t>(chosen.size()) < count) {
    const auto best = std::max_element(
        open.begin(), open.end(), [](const auto& a, const auto& b) { return a.share < b.share; });
    chosen.push_back(*best);
    open.erase(best);
    const Candidate parent = chosen.back();
    if (parent.path.size() == kFirstDraft.size()) continue;
    for (int32_t rank = 0; rank < 10; ++rank) {
      RankPath path = parent.path;
      path.push_back(rank);
      open.push_back({path, std::min(1.0, 1.45 * parent.share * accuracy(path.size() - 1, rank))});
    }
  }
  std::vector<PathCount> counts;
  for (const Candidate& each : chosen)
    counts.push_back({each.path, std::llround(each.share * static_cast<double>(kPositions))});
  return counts;
}

ChoiceTree example_tree(int32_t num_nodes) {
  TreeCalibration calibration;
  calibration.machine = "Example CPU, 2 threads, bfloat16";
  calibration.context = 256;
  calibration.num_positions = kPositions;
  calibration.num_answers = 131;
  for (size_t head = 0; head < kFirstDraft.size(); ++head) {
    auto& row = calibration.head_accuracy.emplace_back();
    for (int32_t rank = 0; rank < 10; ++rank) row.push_back(accuracy(head, rank));
  }
  calibration.path_counts = best_paths(63);
  double expected = 1;
  for (int32_t n = 1; n <= 64; ++n) {
    if (n > 1)
      expected += static_cast<double>(calibration.path_counts[static_cast<size_t>(n) - 2].count) /
                  static_cast<double>(kPositions);
    const double step_ms = 15.9 + (n > 1 ? 1.1 : 0) + 0.035 * n + (n > 32 ? 0.12 * (n - 32) : 0);
    calibration.sizes.push_back({n, expected, step_ms});
  }
  std::vector<RankPath> paths;
  for (int32_t i = 0; i + 1 < num_nodes; ++i)
    paths.push_back(calibration.path_counts[static_cast<size_t>(i)].path);
  ChoiceTree tree = make_choice_tree(paths, 10, "example");
  tree.heads = "sha256:4f0c91ab2d3e5a6b7c8d9e0f";
  const double value = calibration.sizes[static_cast<size_t>(num_nodes) - 1].tokens_per_step;
  tree.expected_tokens_per_step = Estimate{value, value - 0.05, value + 0.06};
  tree.calibration = std::move(calibration);
  return tree;
}

TrainingCurve example_curve() {
  TrainingCurve curve;
  for (int64_t step = 20; step <= 430; step += 10) {
    const double done = 1 - std::exp(-static_cast<double>(step) / 90);
    const double wobble = 0.012 * std::sin(static_cast<double>(step) * 1.7);
    CurvePoint point{step, 8.4 - 2.6 * done + 6 * wobble, {}};
    for (const double accuracy : kFirstDraft)
      point.head_top_1.push_back(accuracy * (0.25 + 0.75 * done) + wobble);
    if (step % 100 == 0 || step == 430) {
      CurvePoint validation = point;
      validation.loss += 0.08;
      for (double& share : validation.head_top_1) share -= 0.008;
      curve.validation.push_back(validation);
    }
    curve.train.push_back(std::move(point));
  }
  return curve;
}

HeadsManifest example_heads() {
  HeadsManifest heads;
  heads.hidden_size = 576;
  heads.vocab_size = 49152;
  heads.fingerprint = "sha256:4f0c91ab2d3e5a6b7c8d9e0f";
  heads.backbone = "sha256:91ab0c3e77aa";
  heads.dataset = "sha256:d00d5e7f1234";
  heads.step = 430;
  heads.num_validation = kPositions;
  for (const double top_1 : kFirstDraft)
    heads.quality.push_back({7.2 - 9 * top_1, top_1, 1.6 * top_1, 1.85 * top_1});
  heads.settings = "train:\n  epochs: 2\n";
  return heads;
}

}  // namespace

ReportInputs example_run(int32_t num_nodes) {
  ReportInputs inputs;
  inputs.run = "demo <smollm2 & friends>";
  inputs.dataset.value = DatasetSummary{.info = {.backbone = "sha256:91ab0c3e77aa",
                                                 .tokenizer = "sha256:7070707070",
                                                 .prompts = "sha256:ababababab",
                                                 .sampling = "temperature: 0.7\ntop_p: 0.95\n",
                                                 .seed = 1,
                                                 .vocab_size = 49152,
                                                 .hidden_size = 576},
                                        .fingerprint = "sha256:d00d5e7f1234",
                                        .num_samples = 1412,
                                        .num_answer_tokens = 218450,
                                        .complete = true};
  inputs.training.value = example_curve();
  inputs.heads.value = example_heads();
  inputs.tree.value = example_tree(num_nodes);
  ReportedComparison comparison;
  comparison.dtype = "bfloat16";
  comparison.machine = "Example CPU, 2 threads, bfloat16";
  comparison.settings = "run: runs/demo\nseed: 1\nbackbone:\n  model: model.gguf  # <own>\n";
  comparison.backbone = "sha256:91ab0c3e77aa";
  const auto phases = [](double propose, double verify, double accept, double commit) {
    return std::vector<std::pair<std::string, double>>{
        {"propose", propose}, {"verify", verify}, {"accept", accept}, {"commit", commit}};
  };
  comparison.methods = {
      {"none", "greedy", 0, 61.3, 1, 1, 1, {}, {}, 12, {0, 1536}, phases(0.01, 16.1, 0.15, 0.05)},
      {"medusa",
       "greedy",
       0,
       118.4,
       2.14,
       1.108,
       1.931,
       std::pair(1.74, 2.16),
       12,
       12,
       {0, 262, 243, 129, 58, 26},
       phases(0.92, 16.63, 0.31, 0.22)},
      {"medusa",
       "typical",
       0,
       127.9,
       2.33,
       1.117,
       2.086,
       std::pair(1.88, 2.31),
       {},
       12,
       {0, 201, 226, 141, 66, 25},
       phases(0.93, 16.66, 0.44, 0.23)}};
  comparison.date = "2026-11-25";
  comparison.version = "medusa 0.1.0 (012fc3e1f2a0)";
  comparison.question = "Why is <the> sky blue?";
  comparison.answers = {{"plain", 1.25, {{1, "Light"}, {1, " scatters"}, {1, "."}}},
                        {"medusa, greedy", 0.75, {{2, "Light scatters"}, {1, "."}}}};
  inputs.comparison.value = comparison;
  inputs.settings = comparison.settings;
  return inputs;
}

std::string example_comparison() {
  return R"({"methods": [
 {"drafter": "none", "rule": "greedy", "dtype": "bfloat16", "tokens_per_s": 61.3, "tokens_per_step": 1.0,
  "step_overhead": 1.0, "speedup": 1.0, "same_text": 12, "num_prompts": 12, "emitted_per_step": [0, 1000],
  "times": {"propose_s": 0.01, "verify_s": 16.1, "accept_s": 0.15, "commit_s": 0.05}},
 {"drafter": "medusa", "rule": "greedy", "dtype": "bfloat16", "tokens_per_s": 118.4, "tokens_per_step": 2.14,
  "step_overhead": 1.108, "speedup": 1.931, "speedup_95": [1.74, 2.16], "same_text": 12,
  "num_prompts": 12, "emitted_per_step": [0, 300, 200],
  "times": {"propose_s": 0.5, "verify_s": 8.3, "accept_s": 0.1, "commit_s": 0.1}},
 {"drafter": "medusa", "rule": "typical", "dtype": "bfloat16", "tokens_per_s": 127.9, "tokens_per_step": 2.33,
  "step_overhead": 1.117, "speedup": 2.086, "same_text": null, "num_prompts": 12}],
 "date": "2026-11-25", "version": "medusa 0.1.0", "example": {"question": "Why?", "answers": [
  {"method": "plain", "seconds": 1.5, "steps": [[1, "Be"], [1, "cause"]]},
  {"method": "medusa, greedy", "seconds": 0.5, "steps": [[2, "Because"]]}]},
 "machine": {"description": "Example CPU"}, "settings": {"yaml": "seed: 1\n", "backbone": "sha256:91ab"}})";
}

std::string example_metrics() {
  std::string text;
  for (const int step : {20, 40, 60})
    text +=
        R"({"kind":"train","step":)" + std::to_string(step) +
        R"(,"epoch":0.1,"loss_nats":7.5,"head_loss_nats":[3.0,4.0],"top_1":[0.3,0.2],"top_5":[0.4,0.3],)"
        R"("top_10":[0.5,0.4],"positions":1000,"elapsed_s":2.5,"learning_rate":0.001,"gradient_norm":1.0,)"
        R"("positions_per_s":400.0})"
        "\n";
  return text +
         R"({"kind":"validation","step":60,"epoch":0.3,"loss_nats":7.25,"head_loss_nats":[2.9,3.9],)"
         R"("top_1":[0.31,0.21],"top_5":[0.41,0.31],"top_10":[0.51,0.41],"positions":3000,"elapsed_s":7.5})"
         "\n";
}

std::string example_joint_metrics() {
  std::string text;
  for (const int step : {20, 40, 60}) {
    const std::string at = R"("step":)" + std::to_string(step);
    text += R"({"kind":"train",)" + at +
            R"(,"loss_nats":1.5,"top_1":[0.3,0.2],"backbone_loss_nats":0.0)" +
            std::to_string(step) + "}\n";
    text +=
        R"({"kind":"guard",)" + at + R"(,"loss_nats":0.0,"top_1":[],"guard_kl_nats":0.0)" +
        std::to_string(step / 20) +
        R"(,"guard_perplexity":3.1,"guard_original_perplexity":3.0,"guard_greedy_match":0.75})" +
        "\n";
  }
  return text;
}

}  // namespace medusa::fixtures
