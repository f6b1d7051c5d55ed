// Every drafter on the tiny trained model in float32: the text is that of plain decoding.
#include <gtest/gtest.h>

#include <filesystem>

#include "infer/backbone_target.h"
#include "infer/draft_models/second_model.h"
#include "infer/draft_models/skipping_model.h"
#include "infer/factory.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/infer/drafter_cases.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

using fixtures::DrafterCase;

const std::filesystem::path kModel = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";

/// The model and what drafters need of it, loaded once.
struct Model {
  Llama llama{load_weights(kModel, at::kFloat, at::kCPU)};
  fixtures::HeadParts heads{llama.weights()};
  fixtures::HeadParts sequential{llama.weights(), HeadInput::Sequential};
  fixtures::HeadParts prefix{llama.weights(), HeadInput::PrefixSequential};

  fixtures::HeadParts corrected{llama.weights(), HeadInput::Root, 32};

  DraftParts parts(const DrafterCase& drafter) {
    const HeadInput input = drafter.heads;
    if (drafter.correction_rank > 0) return corrected.parts();
    if (has_prefix(input)) return prefix.parts();
    return input == HeadInput::Sequential ? sequential.parts() : heads.parts();
  }
  Llama second{load_weights(kModel, at::kFloat, at::kCPU)};  // a draft that is always right
  SecondModel draft{second, 1, 256, llama.config().vocab_size};
  Eagle3Model eagle3{fixtures::arbitrary_eagle3(llama.weights(), {1, 2, 4}), llama.weights()};
};

Model& model() {
  static Model loaded;
  return loaded;
}

struct ModelText {
  std::vector<TokenId> tokens;
  DecodeStats stats;
};

const TextStore& stories();
SharedTexts& answers();

const DrafterCase kPlain = fixtures::case_of(DrafterKind::None);

ModelText decode_text(const DrafterCase& drafter, const AcceptanceRule& rule,
                      const std::vector<TokenId>& prompt, uint64_t seed, int64_t max_rows = 256) {
  BackboneTarget target(model().llama, 1, max_rows);
  ModelText out;
  DecodeRequest request{prompt, {96, 64, {}}, Random(seed), {}};
  request.emit = [&](const EmittedToken& token) {
    out.tokens.push_back(token.id);
    return true;
  };
  SkippingModel skipping(target, {1});
  DraftParts parts = model().parts(drafter);
  parts.draft = &model().draft;
  parts.skipping = &skipping;
  parts.eagle3 = &model().eagle3;
  if (needs_of(drafter.config).store) parts.store = &stories();
  if (needs_of(drafter.config).shared) parts.shared = &answers();
  out.stats = decode_one(target, rule, make_drafter_factory(drafter.config, parts), request).stats;
  return out;
}

/// What drafters look up: a story of the model's own.
const TextStore& stories() {
  static const fixtures::TextStoreFile file({decode_text(kPlain, GreedyRule(), {1}, 1).tokens});
  return file.store();
}

/// The same as an answer that was finished before.
SharedTexts& answers() {
  static SharedTexts texts = [] {
    SharedTexts out(1 << 20);
    std::vector<TokenId> text{1};
    for (const TokenId token : decode_text(kPlain, GreedyRule(), {1}, 1).tokens)
      text.push_back(token);
    out.add(std::move(text));
    return out;
  }();
  return texts;
}

/// The beginning of a text, its first story, a story told twice, and one token again and again.
std::vector<std::vector<TokenId>> prompts() {
  std::vector<TokenId> story{1};
  for (const TokenId token : decode_text(kPlain, GreedyRule(), {1}, 1).tokens)
    story.push_back(token);
  std::vector<TokenId> twice = story;
  twice.insert(twice.end(), story.begin(), story.begin() + 30);
  return {{1}, {story.begin(), story.begin() + 20}, twice, std::vector<TokenId>(9, 300)};
}

class EveryDrafterOnAModel : public testing::TestWithParam<DrafterCase> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryDrafterOnAModel, testing::ValuesIn(fixtures::drafter_cases()),
                         [](const auto& each) { return each.param.name; });

TEST_P(EveryDrafterOnAModel, GivesThePlainGreedyText) {
  int64_t proposed = 0, accepted = 0;
  for (const std::vector<TokenId>& prompt : prompts()) {
    const ModelText plain = decode_text(kPlain, GreedyRule(), prompt, 1);
    const ModelText text = decode_text(GetParam(), GreedyRule(), prompt, 1);
    EXPECT_EQ(text.tokens, plain.tokens) << prompt.size() << " tokens";
    proposed += text.stats.proposed;
    accepted += text.stats.accepted;
  }
  if (GetParam().config.drafter == DrafterKind::None) return;
  EXPECT_GT(proposed, 0);
  const DraftNeeds needs = needs_of(GetParam().config);
  if (!needs.heads && !needs.eagle3) {  // these draft at random here
    EXPECT_GT(accepted, 0);
  }
}

TEST_P(EveryDrafterOnAModel, GivesThePlainSampledTextOfEachSeed) {
  const MatchRule rule({.temperature = 0.7});
  const std::vector<TokenId> prompt = prompts().at(2);
  for (uint64_t seed = 0; seed < 5; ++seed)
    EXPECT_EQ(decode_text(GetParam(), rule, prompt, seed).tokens,
              decode_text(kPlain, rule, prompt, seed).tokens)
        << seed;
}

TEST_P(EveryDrafterOnAModel, FillsTheContextToItsLastRow) {
  const std::vector<TokenId> prompt = prompts().at(2);
  const auto rows = static_cast<int64_t>(prompt.size()) + 21;
  const ModelText plain = decode_text(kPlain, GreedyRule(), prompt, 1, rows);
  const ModelText text = decode_text(GetParam(), GreedyRule(), prompt, 1, rows);
  EXPECT_EQ(text.tokens, plain.tokens);
  EXPECT_EQ(text.tokens.size(), 22U);
  EXPECT_EQ(text.stats.finish, FinishReason::Context);
}

}  // namespace
}  // namespace medusa
