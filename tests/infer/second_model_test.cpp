// Draft models over real weights: their predictions are those of the text read from the start.
#include "infer/draft_models/second_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "infer/draft_models/skipping_model.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

/// Logits after a text, by a pass of its own over all layers or some.
at::Tensor logits_after(Llama& llama, const std::vector<TokenId>& text,
                        const std::vector<int32_t>& layers = {}) {
  KvCache cache = llama.make_cache(1, 256);
  const Segment segment{cache.open(), text, {}};
  const at::Tensor hidden = llama.forward({&segment, 1}, cache, layers);
  return llama.logits(hidden.narrow(0, hidden.size(0) - 1, 1))[0].clone();
}

std::vector<TokenId> path_text(std::vector<TokenId> text, const CandidateTree& tree, int32_t node) {
  std::vector<TokenId> path;
  for (int32_t at = node; at > 0; at = tree.parents[static_cast<size_t>(at)])
    path.insert(path.begin(), tree.tokens[static_cast<size_t>(at)]);
  text.insert(text.end(), path.begin(), path.end());
  return text;
}

class SecondModels : public testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Types, SecondModels, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& each) {
                           return each.param == at::kFloat ? "f32" : "bf16";
                         });

/// Grows trees level by level through several steps with different outcomes.
TEST_P(SecondModels, PredictsAsIfItReadTheTextFromTheStart) {
  Llama llama(tiny_weights(5, tiny_config(), GetParam()));
  SecondModel model(llama, 2, 200, 130);
  std::vector<TokenId> text = random_tokens(1, 40);
  const auto other = model.open();  // rows of another sequence lie beside
  other->begin(random_tokens(2, 30));
  const auto sequence = model.open();
  sequence->begin(text);
  // Of each step: which nodes of the tree below become text, and the token after them.
  const std::vector<std::vector<int32_t>> accepted{{}, {2, 4}, {1}, {2, 4, 6}, {}, {1, 3, 5}};
  for (size_t step = 0; step < accepted.size(); ++step) {
    CandidateTree tree = root_only(text.back());
    const DraftContext context{text, {}, 10, 64, 0};
    const std::vector<std::vector<int32_t>> levels{{0, 0}, {1, 2}, {3, 4}};  // parents of each
    int32_t first = 0;
    for (const auto& parents : levels) {
      const at::Tensor logits = sequence->extend(context, tree, first);
      ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{tree.size() - first, 130}));
      for (int32_t node = first; node < tree.size(); ++node) {
        const at::Tensor expected = logits_after(llama, path_text(text, tree, node));
        const at::Tensor row = logits[node - first];
        const bool same = GetParam() == at::kBFloat16 ? at::equal(row, expected)
                                                      : at::allclose(row, expected, 1e-4, 1e-5);
        EXPECT_TRUE(same) << "step " << step << " node " << node;
      }
      first = tree.size();
      for (const int32_t parent : parents) {
        tree.tokens.push_back(static_cast<TokenId>((7 * tree.size() + 11 * step) % 130));
        tree.parents.push_back(parent);
      }
    }
    sequence->keep(accepted[step]);
    for (const int32_t node : accepted[step])
      text.push_back(tree.tokens[static_cast<size_t>(node)]);
    text.push_back(static_cast<TokenId>(50 + step));
    if (step == 3) {  // steps in which nobody asked the draft model
      sequence->keep(std::vector<int32_t>{});
      for (const TokenId token : random_tokens(9, 25)) text.push_back(token);
    }
  }
}

TEST(SecondModel, HasAsManyColumnsAsTheTarget) {
  Llama llama(tiny_weights(5));
  const std::vector<TokenId> text = random_tokens(1, 5);
  for (const int64_t vocab : {100, 150}) {
    SecondModel model(llama, 1, 64, vocab);
    const auto sequence = model.open();
    const at::Tensor logits = sequence->extend({text, {}, 4, 8, 0}, root_only(text.back()), 0);
    ASSERT_EQ(logits.size(1), vocab);
    EXPECT_TRUE(
        at::equal(logits[0].narrow(0, 0, 100), logits_after(llama, text).narrow(0, 0, 100)));
    if (vocab == 150) {
      EXPECT_TRUE((logits[0].narrow(0, 130, 20) < -1e30).all().item<bool>());
    }
  }
}

TEST(SkippingModel, DraftsWithTheLayersThatAreLeftAndLeavesTheTargetAlone) {
  ModelConfig config = tiny_config();
  config.num_layers = 4;
  Llama llama(tiny_weights(5, config, at::kBFloat16));
  BackboneTarget target(llama, 1, 128);
  const std::vector<TokenId> text = random_tokens(1, 20);
  const int32_t slot = target.open();
  target.prefill(slot, std::span(text).first(19));
  const CandidateTree tree{{text.back(), 7, 9}, {-1, 0, 1}, 3, {}};
  const SlotTree only{slot, &tree};
  const at::Tensor before = target.forward({&only, 1})[0].logits.clone();

  SkippingModel model(target, {1, 2});
  const auto sequence = model.open();
  const DraftContext context{text, {}, 4, 8, slot};
  const at::Tensor drafted = sequence->extend(context, root_only(text.back()), 0).clone();
  EXPECT_FALSE(at::equal(drafted[0], before[0])) << "two layers are missing";
  EXPECT_TRUE(at::equal(target.forward({&only, 1})[0].logits, before));
}

TEST(SkippingModel, ListsThatCannotBeAreTheUsersError) {
  const auto error = [](const std::vector<int64_t>& skip) {
    return fixtures::error_text([&] { check_skipped_layers(skip, 3); });
  };
  EXPECT_EQ(error({0, 2}), "(no error)");
  EXPECT_EQ(error({3}),
            "generate.layer_skip.skip: layer 3, expected layers from 0 to 2; correct the list");
  EXPECT_EQ(error({1, 1}),
            "generate.layer_skip.skip: layer 1 is listed twice, expected each layer once; remove "
            "one");
  EXPECT_EQ(error({0, 1, 2}),
            "generate.layer_skip.skip: all 3 layers are skipped, expected at least one that runs; "
            "shorten the list");
}

}  // namespace
}  // namespace medusa
