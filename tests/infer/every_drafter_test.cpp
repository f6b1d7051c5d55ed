// What every drafter promises, whatever it proposes: the text is that of plain decoding. A new
// value of DrafterKind is tested here without a line of its own.
#include <gtest/gtest.h>

#include "infer/factory.h"
#include "infer/grammar/grammar_drafter.h"
#include "infer/grammar/grammar_processor.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/infer/drafter_cases.h"
#include "tests/infer/grammar/toy_grammar.h"
#include "tests/infer/logits/logits_cases.h"
#include "tests/infer/toy_drafters.h"
#include "tests/infer/toy_heads.h"
#include "tests/reference/changed_logits.h"

namespace medusa {
namespace {

using fixtures::decode_toy;
using fixtures::Decoded;

const std::vector<TokenId> kRepetitive{1, 2, 3, 1, 2, 3, 4, 1, 2};
using fixtures::kGreedy;
using fixtures::kWarm;

std::vector<TokenId> without_last(std::vector<TokenId> prompt, const std::vector<TokenId>& text) {
  prompt.insert(prompt.end(), text.begin(), text.end());
  prompt.pop_back();
  return prompt;
}

class EveryDrafter : public testing::TestWithParam<fixtures::DrafterCase> {
 protected:
  DrafterFactory drafter() { return make_drafter_factory(GetParam().config, heads_.parts()); }

  fixtures::ToyHeads heads_{GetParam().heads, GetParam().correction_rank};
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryDrafter, testing::ValuesIn(fixtures::drafter_cases()),
                         [](const auto& each) { return each.param.name; });

TEST_P(EveryDrafter, GivesThePlainGreedyText) {
  for (const std::vector<TokenId>& prompt : {kRepetitive, {4}, {6, 6, 6, 6}}) {
    const auto plain = fixtures::plain_text(prompt, 80, kGreedy, Random(1));
    for (const int32_t max_nodes : {1, 2, 3, 5, 16, 64}) {
      const Decoded run = decode_toy(GreedyRule(), drafter(), prompt, {80, max_nodes, {}});
      EXPECT_EQ(run.text, plain) << max_nodes;
      EXPECT_EQ(run.cached, without_last(prompt, plain)) << max_nodes;
    }
  }
}

TEST_P(EveryDrafter, GivesThePlainSampledTextOfEachSeed) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto plain = fixtures::plain_text(kRepetitive, 80, kWarm, Random(seed));
    const Decoded run = decode_toy(MatchRule(kWarm), drafter(), kRepetitive, {80, 64, {}}, seed);
    EXPECT_EQ(run.text, plain) << seed;
    EXPECT_EQ(run.cached, without_last(kRepetitive, plain)) << seed;
  }
}

/// The text after a prompt under changes of the logits, without any of the decoder's code.
std::vector<TokenId> changed_text(const LogitsConfig& config, TokenId end,
                                  const std::vector<TokenId>& prompt, size_t count,
                                  const SamplingConfig& sampling, const Random& random) {
  std::vector<TokenId> context = prompt, text;
  while (text.size() < count && (text.empty() || text.back() != end)) {
    const auto row =
        reference::changed_logits(config, {end}, prompt, text, fixtures::toy_logits(context));
    const TokenId next = sampling.temperature == 0
                             ? argmax(row)
                             : draw(target_distribution(row, sampling), random, RandomUse::Accept,
                                    static_cast<int64_t>(context.size()) - 1);
    text.push_back(next);
    context.push_back(next);
  }
  return text;
}

TEST_P(EveryDrafter, GivesThePlainTextUnderChangesOfTheLogits) {
  constexpr TokenId kEnd = 6;
  const SamplingConfig narrow{.temperature = 1.5, .top_k = 5, .top_p = 0.95, .min_p = 0.2};
  for (const fixtures::LogitsCase& each : fixtures::logits_cases())
    for (const SamplingConfig& sampling : {kGreedy, kWarm, narrow})
      for (const uint64_t seed : {1, 2}) {
        std::shared_ptr<AcceptanceRule> rule = std::make_shared<GreedyRule>();
        if (sampling.temperature > 0) rule = std::make_shared<MatchRule>(sampling);
        fixtures::ToyTarget target;
        std::vector<TokenId> text;
        DecodeRequest request = fixtures::toy_request(kRepetitive, {80, 16, {kEnd}}, seed, text);
        request.processors = make_processors(each.config, {kEnd});
        decode_one(target, *rule, drafter(), std::move(request));
        EXPECT_EQ(text, changed_text(each.config, kEnd, kRepetitive, 80, sampling, Random(seed)))
            << each.name << ", temperature " << sampling.temperature;
      }
}

/// The text of a grammar without any of the decoder's code.
std::vector<TokenId> grammar_text(const SamplingConfig& sampling, const Random& random) {
  std::vector<TokenId> context = kRepetitive, plain;
  while (plain.size() < 60 && (plain.empty() || plain.back() != fixtures::kToyEnd)) {
    const auto row = fixtures::toy_masked(plain, fixtures::toy_logits(context));
    plain.push_back(sampling.temperature == 0 ? argmax(row)
                                              : draw(target_distribution(row, sampling), random,
                                                     RandomUse::Accept, std::ssize(context) - 1));
    context.push_back(plain.back());
  }
  return plain;
}

void expect_grammar_text(const DrafterFactory& drafter) {
  for (const SamplingConfig& sampling : {kGreedy, kWarm})
    for (const uint64_t seed : {1, 2, 3})
      for (const int32_t max_nodes : {1, 2, 16}) {
        std::shared_ptr<AcceptanceRule> rule = std::make_shared<GreedyRule>();
        if (sampling.temperature > 0) rule = std::make_shared<MatchRule>(sampling);
        fixtures::ToyTarget target;
        std::vector<TokenId> text;
        DecodeRequest request =
            fixtures::toy_request(kRepetitive, {60, max_nodes, {fixtures::kToyEnd}}, seed, text);
        request.processors.emplace_back([] {
          return std::make_unique<GrammarProcessor>(std::make_shared<fixtures::ToyGrammar>());
        });
        decode_one(target, *rule, drafter, std::move(request));
        EXPECT_EQ(text, grammar_text(sampling, Random(seed)))
            << "temperature " << sampling.temperature << ", seed " << seed << ", " << max_nodes;
      }
}

TEST_P(EveryDrafter, GivesThePlainTextOfAGrammar) { expect_grammar_text(drafter()); }

TEST_P(EveryDrafter, GivesItWhereItsTreesAreKeptInsideTheGrammar) {
  expect_grammar_text(inside_grammar(drafter(), GetParam().config.drafter,
                                     std::make_shared<fixtures::ToyGrammar>()));
}

TEST_P(EveryDrafter, EndsTheTextAtAnEndTokenInsideARun) {
  const auto plain = fixtures::plain_text(kRepetitive, 60, kGreedy, Random(1));
  for (TokenId eos = 0; eos < fixtures::kToyVocab; ++eos) {
    const auto end = std::find(plain.begin(), plain.end(), eos);
    const std::vector<TokenId> expected(plain.begin(), end == plain.end() ? end : end + 1);
    const Decoded run = decode_toy(GreedyRule(), drafter(), kRepetitive, {60, 64, {eos}});
    EXPECT_EQ(run.text, expected) << eos;
    EXPECT_EQ(run.cached, without_last(kRepetitive, expected)) << eos;
  }
}

TEST_P(EveryDrafter, EndsTheTextWhereItsReaderStops) {
  const auto plain = fixtures::plain_text(kRepetitive, 60, kGreedy, Random(1));
  for (size_t wanted = 30; wanted < 44; ++wanted) {
    fixtures::ToyTarget target;
    std::vector<TokenId> text;
    DecodeRequest request = fixtures::toy_request(kRepetitive, {60, 64, {}}, 1, text);
    request.emit = [&, check = request.emit](const EmittedToken& token) {
      return check(token) && text.size() < wanted;
    };
    decode_one(target, GreedyRule(), drafter(), request);
    const std::vector<TokenId> expected(plain.begin(),
                                        plain.begin() + static_cast<std::ptrdiff_t>(wanted));
    EXPECT_EQ(text, expected);
    EXPECT_EQ(target.closed.at(0), without_last(kRepetitive, expected));
  }
}

TEST_P(EveryDrafter, ProposesNoMoreThanMayStillBeEmitted) {
  for (int32_t count = 1; count <= 40; ++count) {
    const Decoded run = decode_toy(GreedyRule(), drafter(), kRepetitive, {count, 64, {}});
    EXPECT_EQ(run.text,
              fixtures::plain_text(kRepetitive, static_cast<size_t>(count), kGreedy, Random(1)));
    EXPECT_EQ(run.cached, without_last(kRepetitive, run.text));
  }
}

TEST_P(EveryDrafter, FillsTheContextToItsLastRow) {
  const auto plain = fixtures::plain_text(kRepetitive, 100, kGreedy, Random(1));
  for (int64_t rows = 9; rows < 60; rows += 3) {
    const Decoded run = decode_toy(GreedyRule(), drafter(), kRepetitive, {100, 64, {}}, 1, rows);
    EXPECT_EQ(run.stats.finish, FinishReason::Context);
    EXPECT_EQ(run.text, std::vector<TokenId>(plain.begin(), plain.begin() + (rows - 8)));
    EXPECT_EQ(run.cached.size(), static_cast<size_t>(rows));
  }
}

TEST_P(EveryDrafter, SequencesBesideEachOtherDoNotMix) {
  const DrafterFactory make = drafter();
  std::vector<std::vector<TokenId>> prompts{{1, 2, 3}, {4}, {6, 5, 6, 5, 6}, {0, 0}, {2, 1, 2}};
  fixtures::ToyTarget target(3);
  std::vector<std::vector<TokenId>> texts(prompts.size());
  size_t taken = 0;
  const auto next = [&]() -> std::optional<DecodeRequest> {
    if (taken == prompts.size()) return std::nullopt;
    const size_t i = taken++;
    return fixtures::toy_request(prompts[i], {30 + static_cast<int32_t>(i), 64, {}}, i, texts[i]);
  };
  decode(target, MatchRule(kWarm), make, next, [](size_t, const DecodeStats&) { return true; });
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(texts[i], fixtures::plain_text(prompts[i], 30 + i, kWarm, Random(i)));
}

/// Checks each tree against what the step allows.
class Watched : public Drafter {
 public:
  explicit Watched(std::unique_ptr<Drafter> inner) : inner_(std::move(inner)) {}
  std::span<const int32_t> feature_layers() const override { return inner_->feature_layers(); }
  void begin(std::span<const TokenId> prompt) override { inner_->begin(prompt); }
  void read_prompt(const at::Tensor& features) override { inner_->read_prompt(features); }
  CandidateTree propose(const DraftContext& context, const Random& random) override {
    const CandidateTree tree = inner_->propose(context, random);
    std::vector<int32_t> depths(1, 0);
    for (int32_t i = 1; i < tree.size(); ++i) {
      const int32_t parent = tree.parents.at(static_cast<size_t>(i));
      EXPECT_GE(parent, 0);
      EXPECT_LT(parent, i);
      depths.push_back(depths.at(static_cast<size_t>(parent)) + 1);
      if (i >= tree.num_verify) continue;
      EXPECT_LE(depths.back(), context.max_depth);
      EXPECT_EQ(find_child(tree, parent, tree.tokens[static_cast<size_t>(i)]), i) << "a twin";
    }
    EXPECT_LE(tree.size(), context.max_nodes);
    return tree;
  }
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    inner_->observe(tree, output, accepted);
  }

 private:
  std::unique_ptr<Drafter> inner_;
};

TEST_P(EveryDrafter, KeepsToDepthAndNodesAndHasNoDuplicates) {
  const auto watched = [&] { return std::make_unique<Watched>(drafter()()); };
  for (const int32_t max_nodes : {1, 2, 7, 30, 64}) {
    decode_toy(MatchRule(kWarm), watched, kRepetitive, {70, max_nodes, {}}, 3, 60);
    decode_toy(MatchRule(kWarm), watched, kRepetitive, {40, max_nodes, {}}, 3);
  }
}

}  // namespace
}  // namespace medusa
