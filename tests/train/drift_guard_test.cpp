#include "train/joint/drift_guard.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

/// Changes the model a little or a lot.
void change(const TunedLlama& llama, double amount) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, tensor] : llama.named_parameters())
    if (name.ends_with(".b"))
      at::Tensor(tensor).copy_(at::linspace(-amount, amount, tensor.numel()).view(tensor.sizes()));
}

TEST(DriftGuard, ABackboneAsItWasHasNotDrifted) {
  const TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  TunedLlama llama(run.backbone, run.joint, 1);
  const DriftGuard guard(run.joint.guard, dataset, {0, 1, 2, 3}, llama, 16);
  const Drift drift = guard.measure(llama);
  EXPECT_NEAR(drift.kl, 0, 1e-7);
  EXPECT_EQ(drift.perplexity, drift.original_perplexity);
  EXPECT_GT(drift.perplexity, 1);
  EXPECT_EQ(drift.greedy_match, 1);
  EXPECT_EQ(drift.answers, 4);
  EXPECT_EQ(drift.positions, 20 + 21 + 22 + 23);
}

TEST(DriftGuard, AnswersAreAsLongAsTheContextLetsThem) {
  TinyJoint run;
  run.joint.guard.greedy_tokens = std::numeric_limits<int64_t>::max();
  const DatasetReader dataset(run.folder.path() / "dataset");
  TunedLlama llama(run.backbone, run.joint, 1);
  const DriftGuard guard(run.joint.guard, dataset, {0, 1}, llama, 16);
  EXPECT_EQ(guard.measure(llama).greedy_match, 1);
}

/// That one pass over the earlier answers says which greedy answers are the same: compared with
/// decoding them again.
TEST(DriftGuard, CountsTheGreedyAnswersThatStayTheSame) {
  const TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const std::vector<int64_t> samples{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto greedy = [&](const Weights& weights, int64_t sample) {
    std::vector<TokenId> tokens(dataset.tokens(sample).begin(),
                                dataset.tokens(sample).begin() + dataset.answer_start(sample));
    const size_t prompt = tokens.size();
    while (tokens.size() < prompt + 6) {
      Llama decoder(weights, Kernels::Reference);
      KvCache cache = decoder.make_cache(1, 64);
      const at::Tensor state = decoder.prefill(cache.open(), tokens, cache).unsqueeze(0);
      tokens.push_back(static_cast<TokenId>(decoder.logits(state).argmax(1).item<int64_t>()));
      if (tokens.back() == 0) break;  // eos
    }
    return tokens;
  };
  double smallest = 1, largest = 0;
  for (const double amount : {0.01, 0.03, 0.1, 0.3}) {
    TunedLlama llama(run.backbone, run.joint, 1);
    const DriftGuard guard(run.joint.guard, dataset, samples, llama, 16);
    change(llama, amount);
    const Weights merged = llama.merged();
    int64_t same = 0;
    for (const int64_t sample : samples)
      same += greedy(merged, sample) == greedy(run.backbone, sample) ? 1 : 0;
    const Drift drift = guard.measure(llama);
    EXPECT_NEAR(drift.greedy_match, static_cast<double>(same) / 12, 1e-9) << amount;
    EXPECT_GT(drift.kl, 0);
    smallest = std::min(smallest, drift.greedy_match);
    largest = std::max(largest, drift.greedy_match);
  }
  EXPECT_LT(smallest, largest) << "the test saw no difference";
}

/// By hand, from what plain passes of both models say of each answer's tokens.
TEST(DriftGuard, MeasuresKlAndPerplexityOfTheAnswers) {
  const TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  TunedLlama llama(run.backbone, run.joint, 1);
  const std::vector<int64_t> samples{2, 5, 9};
  const DriftGuard guard(run.joint.guard, dataset, samples, llama, 16);
  change(llama, 0.3);
  const Drift drift = guard.measure(llama);
  double kl = 0, was_loss = 0, is_loss = 0;
  int64_t count = 0;
  const auto log_probs_of = [&](const Weights& weights, std::span<const TokenId> all) {
    Llama plain(weights, Kernels::Reference);
    KvCache cache = plain.make_cache(1, 64);
    const Segment segment{cache.open(), all, {}};
    const at::Tensor states = plain.forward({&segment, 1}, cache).clone();
    return at::log_softmax(plain.logits(states).to(at::kDouble), 1);
  };
  for (const int64_t sample : samples) {
    const auto all = dataset.tokens(sample);
    const at::Tensor was = log_probs_of(run.backbone, all), is = log_probs_of(llama.merged(), all);
    for (int64_t i = dataset.answer_start(sample); i < std::ssize(all); ++i, ++count) {
      const auto token = all[static_cast<size_t>(i)];
      kl += (was[i - 1].exp() * (was[i - 1] - is[i - 1])).sum().item<double>();
      was_loss -= was[i - 1][token].item<double>();
      is_loss -= is[i - 1][token].item<double>();
    }
  }
  const auto n = static_cast<double>(count);
  ASSERT_GT(kl / n, 0.01);
  EXPECT_NEAR(drift.kl, kl / n, 1e-3 * kl / n);
  EXPECT_NEAR(drift.perplexity, std::exp(is_loss / n), 1e-3 * drift.perplexity);
  EXPECT_NEAR(drift.original_perplexity, std::exp(was_loss / n), 1e-3 * drift.perplexity);
  EXPECT_GT(std::abs(is_loss - was_loss) / n, 0.01) << "the test saw no difference";
}

TEST(DriftGuard, SaysWhatIsExceeded) {
  const TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  GuardConfig config;
  config.min_greedy_match = 0.75;
  const DriftGuard guard(config, dataset, {}, TunedLlama(run.backbone, run.joint, 1), 16);
  Drift drift;
  EXPECT_FALSE(guard.exceeded(drift));
  drift.kl = 0.25;
  EXPECT_EQ(guard.exceeded(drift).value_or(""),
            "KL 0.25 nats, at most 0.1 (train.joint.guard.max_kl)");
  drift.kl = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(guard.exceeded(drift));
  drift.kl = 0;
  drift.perplexity = 3;
  drift.original_perplexity = 2;
  EXPECT_EQ(guard.exceeded(drift).value_or(""),
            "perplexity 1.5 times as high, at most 1.1 times "
            "(train.joint.guard.max_perplexity_ratio)");
  drift.perplexity = 2;
  drift.greedy_match = 0.5;
  EXPECT_EQ(guard.exceeded(drift).value_or(""),
            "0.5 of the greedy answers the same, at least 0.75 "
            "(train.joint.guard.min_greedy_match)");
}

}  // namespace
}  // namespace medusa
