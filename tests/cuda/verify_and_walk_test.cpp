// The rules on a GPU against infer/rules/, on random trees.
#include <numeric>

#include "infer/cuda/step_kernels.h"
#include "infer/row_math.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/typical_rule.h"
#include "infer/sampling.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/cuda/device_tree.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/table_test.h"

namespace medusa {
namespace {

using fixtures::normal;

using VerifyAndWalkTest = TableTest<StepKernels>;
INSTANTIATE_TEST_SUITE_P(Tables, VerifyAndWalkTest,
                         table_choices(emulated_step_kernels, cuda_step_kernels,
                                       /*has_blocks=*/true),
                         table_choice_name<StepKernels>);

constexpr int32_t kUnwritten = -77;

struct Rule {
  DeviceRule kind = DeviceRule::Greedy;
  double temperature = 0;
  TypicalConfig typical{};
  LogitFilter filter{};

  SamplingConfig sampling() const {
    return {temperature, filter.top_k, filter.top_p, static_cast<double>(filter.min_p)};
  }
};

/// Trees of one shape with the target's logits: [B, N, V].
struct Step {
  TestTree shape;
  std::vector<std::vector<int32_t>> tokens{};  // [B] of [N]
  at::Tensor logits{};
  std::vector<uint64_t> seeds{};          // [B]
  std::vector<int32_t> root_positions{};  // [B]

  int64_t num_sequences() const { return logits.size(0); }
  int64_t vocab_size() const { return logits.size(2); }
};

/// Nodes mostly hold what the target finds probable; siblings may hold the same.
Step random_step(uint64_t seed, int64_t num_sequences, int32_t num_nodes, int32_t spread,
                 int64_t vocab_size, double width) {
  Dice dice(seed);
  Step step{.shape = random_shape(dice, num_nodes, spread)};
  step.logits = normal({num_sequences, num_nodes, vocab_size}, seed) * width;
  for (int64_t b = 0; b < num_sequences; ++b) {
    step.seeds.push_back(seed * 100 + static_cast<uint64_t>(b));
    step.root_positions.push_back(10 + dice.roll(1000));
    std::vector<int32_t> tokens{0};
    for (size_t i = 1; i < step.shape.size(); ++i) {
      const auto best = largest_tokens(logits_row(step.logits[b], step.shape.parents[i]), 4);
      const int32_t rank = dice.roll(6);
      tokens.push_back(
          rank >= 4   ? dice.roll(vocab_size)
          : rank >= 2 ? best[0]
                      : best[std::min<size_t>(static_cast<size_t>(rank) + 1, best.size() - 1)]);
    }
    step.tokens.push_back(tokens);
  }
  return step;
}

/// For the match rule: some nodes hold what is drawn.
void draw_some(Step& step, double temperature) {
  const SamplingConfig sampling{.temperature = temperature};
  for (size_t b = 0; b < step.tokens.size(); ++b)
    for (size_t i = 1; i < step.shape.size(); ++i) {
      if (i % 4 == 3) continue;
      const auto parent = static_cast<size_t>(step.shape.parents[i]);
      const auto row =
          logits_row(step.logits[static_cast<int64_t>(b)], static_cast<int64_t>(parent));
      step.tokens[b][i] = sample(row, sampling, Random(step.seeds[b]), RandomUse::Accept,
                                 step.root_positions[b] + step.shape.depths[parent]);
    }
}

/// What a rule asks of the rows: [B N] each.
struct Verified {
  std::vector<int32_t> tokens;
  at::Tensor maxima, log_sums, thresholds;
};

at::Tensor filled(int64_t size, double value, at::ScalarType type, at::Device device) {
  return at::full({size}, value, at::TensorOptions().dtype(type).device(device));
}

Verified verify(const StepKernels& kernels, at::Device device, const Step& step, const Rule& rule) {
  std::vector<int32_t> positions;
  for (const int32_t root : step.root_positions)
    for (const int32_t depth : step.shape.depths) positions.push_back(root + depth);
  const auto n = static_cast<int64_t>(positions.size());
  const at::Tensor logits = step.logits.to(device), seeds = words(step.seeds, device);
  const at::Tensor at_positions = ints(positions, device);
  const at::Tensor tokens = filled(n, kUnwritten, at::kInt, device);
  const at::Tensor maxima = filled(n, -1e30, at::kFloat, device), log_sums = maxima.clone(),
                   thresholds = maxima.clone();
  kernels.verify_rows({.rule = rule.kind,
                       .logits = logits.data_ptr<float>(),
                       .num_rows = n,
                       .vocab_size = step.vocab_size(),
                       .temperature = rule.temperature,
                       .filter = rule.filter,
                       .epsilon = rule.typical.epsilon,
                       .delta = rule.typical.delta,
                       .seeds = elements<uint64_t>(seeds),
                       .positions = elements<int32_t>(at_positions),
                       .rows_per_sequence = step.shape.num_nodes(),
                       .tokens = elements<int32_t>(tokens),
                       .maxima = maxima.data_ptr<float>(),
                       .log_sums = log_sums.data_ptr<float>(),
                       .thresholds = thresholds.data_ptr<float>()},
                      nullptr);
  return {vector_of(tokens), maxima.cpu(), log_sums.cpu(), thresholds.cpu()};
}

/// The same with the host's sampling: emulated, a block of a thousand threads takes its time.
Verified verify_on_host(const Step& step, const Rule& rule) {
  const int64_t b = step.num_sequences(), n = step.shape.num_nodes();
  Verified out{.tokens = {},
               .maxima = at::zeros({b * n}),
               .log_sums = at::zeros({b * n}),
               .thresholds = at::zeros({b * n})};
  const auto scale = static_cast<float>(rule.temperature > 0 ? 1 / rule.temperature : 1);
  for (int64_t r = 0; r < b * n; ++r) {
    const auto sequence = static_cast<size_t>(r / n), node = static_cast<size_t>(r % n);
    const auto row = logits_row(step.logits[r / n], r % n);
    out.tokens.push_back(rule.temperature > 0
                             ? sample(row, rule.sampling(), Random(step.seeds[sequence]),
                                      RandomUse::Accept,
                                      step.root_positions[sequence] + step.shape.depths[node])
                             : argmax(row));
    const SoftmaxSums sums = softmax_sums(row, scale);
    out.maxima[r] = sums.max;
    out.log_sums[r] = sums.log_sum();
    out.thresholds[r] =
        std::min(rule.typical.epsilon, rule.typical.delta * std::exp(-sums.entropy()));
  }
  return out;
}

void expect_same(const Verified& verified, const Verified& host, const Rule& rule) {
  EXPECT_EQ(verified.tokens, host.tokens);
  if (rule.kind != DeviceRule::Typical) return;
  EXPECT_TRUE(verified.maxima.equal(host.maxima));
  EXPECT_TRUE(at::allclose(verified.log_sums, host.log_sums, 0, 2e-6));
  EXPECT_TRUE(at::allclose(verified.thresholds, host.thresholds, 0, 1e-6));
}

struct Walked {
  std::vector<int32_t> counts, paths, next, emitted;
};

Walked walk(const StepKernels& kernels, at::Device device, const Step& step, const Rule& rule,
            const Verified& verified) {
  const TreeOnDevice tree(step.shape, device);
  const int64_t b = step.num_sequences();
  std::vector<int32_t> all_tokens;
  for (const auto& of_sequence : step.tokens)
    all_tokens.insert(all_tokens.end(), of_sequence.begin(), of_sequence.end());
  const at::Tensor tokens = ints(all_tokens, device),
                   verified_tokens = ints(verified.tokens, device);
  const at::Tensor logits = step.logits.to(device), maxima = verified.maxima.to(device);
  const at::Tensor log_sums = verified.log_sums.to(device),
                   thresholds = verified.thresholds.to(device);
  const auto fresh = [&](int64_t size) { return filled(size, kUnwritten, at::kInt, device); };
  const at::Tensor counts = fresh(b), next = fresh(b);
  const at::Tensor paths = fresh(b * (step.shape.max_depth() + 1));
  const at::Tensor emitted = fresh(b * (step.shape.max_depth() + 2)), other = emitted.clone();
  const at::Tensor turn = ints({7}, device);  // odd
  kernels.walk({.rule = rule.kind,
                .tree = tree.view(),
                .tokens = elements<int32_t>(tokens),
                .verified = elements<int32_t>(verified_tokens),
                .logits = logits.data_ptr<float>(),
                .vocab_size = step.vocab_size(),
                .temperature = rule.temperature,
                .maxima = maxima.data_ptr<float>(),
                .log_sums = log_sums.data_ptr<float>(),
                .thresholds = thresholds.data_ptr<float>(),
                .num_sequences = static_cast<int32_t>(b),
                .counts = elements<int32_t>(counts),
                .paths = elements<int32_t>(paths),
                .next = elements<int32_t>(next),
                .emitted = {elements<int32_t>(other), elements<int32_t>(emitted)},
                .turn = elements<int32_t>(turn)},
               nullptr);
  EXPECT_EQ(vector_of(other), vector_of(fresh(b * (step.shape.max_depth() + 2)))) << "not its turn";
  return {vector_of(counts), vector_of(paths), vector_of(next), vector_of(emitted)};
}

Acceptance on_host(const Step& step, int64_t b, const Rule& rule) {
  const auto i = static_cast<size_t>(b);
  const CandidateTree tree{step.tokens[i], step.shape.parents, step.shape.num_nodes(), {}};
  const SamplingConfig sampling = rule.sampling();
  const auto accept = [&](const AcceptanceRule& with) {
    return with.accept(tree, step.logits[b], step.root_positions[i], Random(step.seeds[i]));
  };
  switch (rule.kind) {
    case DeviceRule::Greedy:
      return accept(GreedyRule());
    case DeviceRule::Match:
      return accept(MatchRule(sampling));
    default:
      return accept(TypicalRule(rule.typical, sampling));
  }
}

/// @returns  how many nodes stand in all.
size_t expect_same(const Walked& walked, const Step& step, const Rule& rule) {
  size_t accepted = 0;
  const auto path_size = static_cast<size_t>(step.shape.max_depth()) + 1;
  for (size_t b = 0; b < step.tokens.size(); ++b) {
    const Acceptance host = on_host(step, static_cast<int64_t>(b), rule);
    const CandidateTree tree{step.tokens[b], step.shape.parents, step.shape.num_nodes(), {}};
    accepted += host.path.size();
    std::vector<int32_t> path{0};
    path.insert(path.end(), host.path.begin(), host.path.end());
    path.resize(path_size, kUnwritten);
    std::vector<int32_t> emitted = emitted_tokens(tree, host.path, host.next);
    emitted.insert(emitted.begin(), static_cast<int32_t>(emitted.size()));
    emitted.resize(path_size + 1, kUnwritten);
    const auto part = [&](const std::vector<int32_t>& all, size_t size) {
      const auto first = all.begin() + static_cast<int64_t>(b * size);
      return std::vector<int32_t>(first, first + static_cast<int64_t>(size));
    };
    EXPECT_EQ(walked.counts[b], static_cast<int32_t>(host.path.size()) + 1);
    EXPECT_EQ(walked.next[b], host.next);
    EXPECT_EQ(part(walked.paths, path_size), path);
    EXPECT_EQ(part(walked.emitted, path_size + 1), emitted);
  }
  return accepted;
}

TEST_P(VerifyAndWalkTest, GreedyWalksAsTheHost) {
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 30; ++seed)
    for (const int32_t nodes : {1, 2, 17, 33, 64}) {
      const Step step = random_step(seed, 2, nodes, 1 + static_cast<int32_t>(seed) % 6, 40, 3);
      accepted +=
          expect_same(walk(kernels(), device(), step, {}, verify_on_host(step, {})), step, {});
    }
  EXPECT_GT(accepted, 100U);
}

TEST_P(VerifyAndWalkTest, MatchWalksAsTheHost) {
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const double temperature : {0.3, 1.0, 2.0}) {
      const Rule rule{DeviceRule::Match, temperature};
      Step step = random_step(seed, 2, 2 + static_cast<int32_t>(seed) * 3,
                              1 + static_cast<int32_t>(seed) % 4, 50, 3);
      draw_some(step, temperature);
      accepted += expect_same(walk(kernels(), device(), step, rule, verify_on_host(step, rule)),
                              step, rule);
    }
  EXPECT_GT(accepted, 100U);
}

TEST_P(VerifyAndWalkTest, TypicalWalksAsTheHost) {
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const double temperature : {0.0, 0.7, 1.5})
      for (const TypicalConfig& config : {TypicalConfig{0.09, 0.3}, TypicalConfig{0.01, 0.1}}) {
        const Rule rule{DeviceRule::Typical, temperature, config};
        const Step step = random_step(seed, 2, 2 + static_cast<int32_t>(seed) * 3,
                                      2 + static_cast<int32_t>(seed) % 5, 60, 2.5);
        accepted += expect_same(walk(kernels(), device(), step, rule, verify_on_host(step, rule)),
                                step, rule);
      }
  EXPECT_GT(accepted, 200U);
}

TEST_P(VerifyAndWalkTest, OfEquallyLongPathsTheMoreProbableAndThenTheFirst) {
  // All rows alike: p = 0.5, 0.3, 0.2 of tokens 0, 1, 2; everything above 0.05 stands.
  const at::Tensor row = at::tensor({0.5, 0.3, 0.2}).log().to(at::kFloat);
  const Rule rule{DeviceRule::Typical, 0, {0.05, 1}};
  const auto path = [&](const std::vector<int32_t>& parents, const std::vector<int32_t>& tokens) {
    const auto n = static_cast<int64_t>(parents.size());
    const Step step{.shape = TestTree(parents),
                    .tokens = {tokens},
                    .logits = row.expand({1, n, 3}).contiguous(),
                    .seeds = {1},
                    .root_positions = {3}};
    Walked walked = walk(kernels(), device(), step, rule, verify_on_host(step, rule));
    expect_same(walked, step, rule);
    walked.paths.resize(static_cast<size_t>(walked.counts[0]));
    return walked.paths;
  };
  using Path = std::vector<int32_t>;
  EXPECT_EQ(path({-1, 0, 0, 0}, {0, 2, 0, 1}), (Path{0, 2}));
  EXPECT_EQ(path({-1, 0, 0, 1, 2}, {0, 0, 1, 2, 0}), (Path{0, 2, 4}));
  EXPECT_EQ(path({-1, 0, 0}, {0, 1, 1}), (Path{0, 1})) << "twins";
  EXPECT_EQ(path({-1, 0, 0, 2}, {0, 0, 2, 2}), (Path{0, 2, 3})) << "longer before more probable";
}

TEST_P(VerifyAndWalkTest, RowsAreVerifiedAsOnTheHost) {
  const std::vector<Rule> rules{{DeviceRule::Greedy},
                                {DeviceRule::Match, 0.7},
                                {DeviceRule::Typical, 0, {0.3, 0.9}},
                                {DeviceRule::Typical, 0.5, {0.3, 0.9}}};
  for (const int64_t vocab : {1, 1025, 3001})
    for (const Rule& rule : rules) {
      // In a flat row hardly a token is ruled out before its time is known.
      const double width = vocab == 3001 ? 0.1 : 4.0;
      const Step step = random_step(static_cast<uint64_t>(vocab), 2, 2, 2, vocab, width);
      const Verified verified = verify(kernels(), device(), step, rule);
      expect_same(verified, verify_on_host(step, rule), rule);
      expect_same(walk(kernels(), device(), step, rule, verified), step, rule);
    }
}

/// Draws of rows under the filters that the host's draws are under.
void expect_same_draws(const StepKernels& kernels, at::Device device, Step step,
                       const LogitFilter& filter) {
  for (const double temperature : {0.5, 3.0}) {
    const Rule rule{DeviceRule::Match, temperature, {}, filter};
    const Verified verified = verify(kernels, device, step, rule);
    EXPECT_EQ(verified.tokens, verify_on_host(step, rule).tokens)
        << "top-k " << filter.top_k << ", top-p " << filter.top_p << ", min-p " << filter.min_p
        << ", temperature " << temperature << ", " << step.vocab_size() << " tokens";
  }
}

TEST_P(VerifyAndWalkTest, FilteredRowsAreDrawnFromAsOnTheHost) {
  const std::vector<LogitFilter> filters{{.top_k = 1},
                                         {.top_k = 7},
                                         {.top_k = 5000},
                                         {.top_p = 0.9},
                                         {.top_p = 0.3},
                                         {.top_p = 1e-300},
                                         {.min_p = 0.2F},
                                         {.top_k = 9, .top_p = 0.7},
                                         {.top_k = 40, .top_p = 0.95, .min_p = 0.05F}};
  for (const LogitFilter& filter : filters)
    for (const int64_t vocab : {1, 33, 1500})
      expect_same_draws(kernels(), device(),
                        random_step(static_cast<uint64_t>(vocab), 1, 2, 2, vocab, 3), filter);
}

TEST_P(VerifyAndWalkTest, OfEquallyProbableTokensAFilterKeepsTheFirst) {
  for (const LogitFilter& filter :
       {LogitFilter{.top_k = 1}, LogitFilter{.top_k = 6}, LogitFilter{.top_p = 0.5},
        LogitFilter{.top_k = 20, .top_p = 0.8}}) {
    Step step = random_step(5, 1, 3, 3, 70, 1);
    step.logits = step.logits.clamp(-1.5, 1).round();
    expect_same_draws(kernels(), device(), step, filter);
    step.logits.fill_(2);
    expect_same_draws(kernels(), device(), step, filter);
  }
}

TEST_P(VerifyAndWalkTest, OfEqualLogitsTheFirstIsTaken) {
  for (const int64_t vocab : {31, 4000}) {
    Step step = random_step(1, 1, 3, 3, vocab, 1);
    step.logits = step.logits.clamp(-1, 1).round();
    expect_same(verify(kernels(), device(), step, {}), verify_on_host(step, {}), {});
  }
}

TEST_P(VerifyAndWalkTest, ImpossibleTokensNeverWin) {
  Step step = random_step(3, 1, 2, 2, 3001, 4);
  step.logits[0][1].narrow(0, 5, 2000).fill_(-INFINITY);
  for (const double temperature : {0.0, 0.5}) {
    const Rule rule{DeviceRule::Typical, temperature, {0.3, 0.9}};
    expect_same(verify(kernels(), device(), step, rule), verify_on_host(step, rule), rule);
  }
}

TEST_P(VerifyAndWalkTest, ARowThatIsNotFiniteEndsItsSequenceAlone) {
  for (const float worst : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY})
    for (const Rule& rule : {Rule{DeviceRule::Greedy}, Rule{DeviceRule::Match, 0.7},
                             Rule{DeviceRule::Match, 0.7, {}, {.top_k = 3, .top_p = 0.9}},
                             Rule{DeviceRule::Typical, 0.5, {0.3, 0.9}}}) {
      Step step = random_step(11, 2, 3, 1, 1100, 4);  // a root, and two below
      if (std::isinf(worst) && worst < 0)
        step.logits[1][0].fill_(worst);
      else
        step.logits[1][0][1099] = worst;
      const Verified verified = verify(kernels(), device(), step, rule);
      EXPECT_EQ(verified.tokens[3], kNoToken);
      const Walked walked = walk(kernels(), device(), step, rule, verified);
      const auto size = static_cast<size_t>(step.shape.max_depth()) + 2;
      EXPECT_EQ(walked.emitted[size], kNoToken);
      EXPECT_EQ(walked.counts[1], 1);
      EXPECT_EQ(walked.next[1], 0) << "a token, which the step that runs already embeds";
      Step other = step;  // the other sequence alone
      other.tokens.resize(1);
      other.logits = step.logits.narrow(0, 0, 1);
      expect_same(walked, other, rule);
    }
}

TEST_P(VerifyAndWalkTest, ARowIsVerifiedAlikeBesideAnyOthers) {
  Step all = random_step(9, 2, 2, 2, 700, 2);
  all.seeds = {4, 4};
  const Rule rule{DeviceRule::Typical, 0.9};
  const Verified together = verify(kernels(), device(), all, rule);
  for (int64_t b = 0; b < 2; ++b) {
    const auto i = static_cast<size_t>(b);
    const Step one{.shape = all.shape,
                   .tokens = {all.tokens[i]},
                   .logits = all.logits.narrow(0, b, 1).contiguous(),
                   .seeds = {4},
                   .root_positions = {all.root_positions[i]}};
    const Verified alone = verify(kernels(), device(), one, rule);
    EXPECT_TRUE(alone.log_sums.equal(together.log_sums.narrow(0, 2 * b, 2)));
    EXPECT_TRUE(alone.thresholds.equal(together.thresholds.narrow(0, 2 * b, 2)));
    EXPECT_TRUE(
        std::equal(alone.tokens.begin(), alone.tokens.end(), together.tokens.begin() + 2 * b));
  }
}

}  // namespace
}  // namespace medusa
