// The draft against its definition in PyTorch (tools/dev/make_eagle3_golden.py).
#include "heads/eagle3/eagle3_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/eagle3/small_eagle3.h"

namespace medusa {
namespace {

class Eagle3ModelTest : public testing::Test {
 protected:
  Eagle3Model model(at::ScalarType dtype = at::kFloat) const {
    return {fixtures::small_eagle3(folder_.path()), fixtures::eagle3_target(dtype)};
  }
  std::vector<TokenId> behind() const {  // the tokens behind each position
    const auto text = golden_.at("text").get<std::vector<TokenId>>();
    return {text.begin() + 1, text.end()};
  }
  at::Tensor expected(const nlohmann::json& numbers) const {
    return at::tensor(numbers.get<std::vector<float>>());
  }

  fixtures::TempFolder folder_;
  nlohmann::json golden_ = fixtures::eagle3_golden();
  at::Tensor features_ = fixtures::eagle3_features();
};

TEST_F(Eagle3ModelTest, GivesTheLogitsOfTheDefinition) {
  Eagle3Model draft = model();
  EXPECT_EQ(std::vector<int32_t>(draft.feature_layers().begin(), draft.feature_layers().end()),
            (std::vector<int32_t>{2, 4, 5}));
  Eagle3Text one(draft), all(draft);
  const std::vector<TokenId> tokens = behind();
  const at::Tensor first =
      draft.logits(one.extend(features_.narrow(0, 0, 1), std::span(tokens).first(1)));
  EXPECT_TRUE(at::allclose(first[0], expected(golden_["logits"]["0"]), 1e-4, 1e-4));
  const at::Tensor last = draft.logits(all.extend(features_, tokens));
  EXPECT_TRUE(at::allclose(last[0], expected(golden_["logits"]["19"]), 1e-4, 1e-4));
}

TEST_F(Eagle3ModelTest, RunsAheadOnItsOwnStates) {
  Eagle3Model draft = model();
  Eagle3Text text(draft);
  const at::Tensor state = text.extend(features_, behind());
  const auto chain = golden_.at("chain").get<std::vector<TokenId>>();
  const at::Tensor first = text.grow(std::span(chain).first(1), std::vector<int32_t>{-1}, state);
  const at::Tensor second = text.grow(chain, std::vector<int32_t>{-1, 0}, first);
  EXPECT_TRUE(at::allclose(draft.logits(second)[0], expected(golden_["chain_logits"]), 1e-4, 1e-4));
  // Beside others, and again: what was grown is no part of the text.
  const std::vector<TokenId> tree{5, chain[0], 7, chain[1]};
  const at::Tensor level =
      text.grow(std::span(tree).first(3), std::vector<int32_t>{-1, -1, -1}, state.repeat({3, 1}));
  const at::Tensor below =
      text.grow(tree, std::vector<int32_t>{-1, -1, -1, 1}, level.narrow(0, 1, 1));
  EXPECT_TRUE(at::allclose(below, second, 1e-4, 1e-4));
}

TEST_F(Eagle3ModelTest, ATextInPiecesIsTheText) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Eagle3Model draft = model(dtype);
    Eagle3Text whole(draft), pieces(draft);
    const int64_t length = 300;  // more than one pass and more than the first cache
    const at::Tensor features = features_.repeat({15, 1, 1});
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(i * i % 130));
    const at::Tensor expected = whole.extend(features, tokens);
    at::Tensor state;
    for (int64_t at = 0; at < length; at += 50) {
      state = pieces.extend(features.narrow(0, at, 50),
                            std::span(tokens).subspan(static_cast<size_t>(at), 50));
      const std::vector<TokenId> rejected{9};
      pieces.grow(rejected, std::vector<int32_t>{-1}, state);
    }
    EXPECT_EQ(pieces.length(), length);
    const double tolerance = dtype == at::kFloat ? 1e-4 : 0.03;
    EXPECT_TRUE(at::allclose(state, expected, tolerance, tolerance)) << dtype;
  }
}

TEST_F(Eagle3ModelTest, Bfloat16IsFloat32WithinRounding) {
  Eagle3Model draft = model(at::kBFloat16);
  Eagle3Text text(draft);
  const at::Tensor logits = draft.logits(text.extend(features_, behind()));
  const at::Tensor difference = logits[0] - expected(golden_["logits"]["19"]);
  EXPECT_LT(difference.abs().mean().item<float>(), 0.06);  // logits are six times as large
}

TEST_F(Eagle3ModelTest, DraftsAreTokensOfTheTargetBestFirst) {
  Eagle3Model draft = model();
  Eagle3Text text(draft);
  const at::Tensor state = text.extend(features_, behind());
  const Eagle3Model::Drafts drafts = draft.drafts(state.repeat({2, 1}), 5);
  const at::Tensor log_probs = expected(golden_["logits"]["19"]).log_softmax(-1);
  const auto [values, rows] = log_probs.topk(5);
  ASSERT_EQ(drafts.tokens.size(), 10U);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(drafts.tokens[static_cast<size_t>(i)], 3 * rows[i % 5].item<int64_t>() + 1) << i;
    EXPECT_NEAR(drafts.log_probs[static_cast<size_t>(i)], values[i % 5].item<float>(), 1e-3) << i;
  }
}

TEST_F(Eagle3ModelTest, LogitsThatAreNotFiniteAreRefused) {
  Eagle3Model draft = model();
  const at::Tensor state = at::full({1, 64}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(fixtures::error_text([&] { draft.drafts(state, 5); }),
            "the EAGLE-3 draft: gives logits that are not finite, expected numbers; get its file "
            "again, as its weights may be damaged, or choose another drafter");
}

}  // namespace
}  // namespace medusa
