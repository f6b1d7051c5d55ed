// The promises that make a tree verify what plain decoding emits, on a small random Llama.
#include "infer/backbone_target.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backbone/cpu/cpu_kernels.h"
#include "heads/heads_runner.h"
#include "infer/decoder.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/none_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/backbone/tiny_model.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

constexpr int64_t kRows = 256;

struct Setup {
  const char* name;
  at::ScalarType dtype;
  Kernels kernels;
  CpuIsa isa = CpuIsa::Auto;
  bool quantized = false;
};

Weights weights_of(const Setup& setup) {
  Weights weights = tiny_weights(1, tiny_config(), setup.dtype);
  if (setup.quantized) weights = quantized(std::move(weights));
  return weights;
}

/// LibTorch's ops, and every ISA that this machine has.
std::vector<Setup> every_setup() {
  std::vector<Setup> setups{{"Float32", at::kFloat, Kernels::Auto},
                            {"Bfloat16Plain", at::kBFloat16, Kernels::Reference}};
  const auto add = [&setups](const char* name, CpuIsa isa, bool blocks) {
    if (kernels_for(isa, blocks) != nullptr)
      setups.push_back({name, at::kBFloat16, Kernels::Auto, isa, blocks});
  };
  add("Amx", CpuIsa::Amx, false);
  add("Avx512Bf16", CpuIsa::Avx512Bf16, false);
  add("Avx512", CpuIsa::Avx512, false);
  add("Avx2", CpuIsa::Avx2, false);
  add("PlainCpp", CpuIsa::Portable, false);
  add("Avx512Blocks", CpuIsa::Avx512, true);
  add("Avx2Blocks", CpuIsa::Avx2, true);
  add("PlainCppBlocks", CpuIsa::Portable, true);
  return setups;
}

class BackboneTargets : public testing::TestWithParam<Setup> {
 protected:
  BackboneTargets()
      : weights_(weights_of(GetParam())),
        llama_(weights_, ExecutionContext({.isa = GetParam().isa, .kernels = GetParam().kernels})) {
    if (GetParam().isa != CpuIsa::Auto) {
      EXPECT_STREQ(llama_.kernels(), kernels_for(GetParam().isa, GetParam().quantized)->name);
    }
  }

  /// Bit-equal in bfloat16; in float32 LibTorch's GEMMs depend on the number of rows.
  void expect_same(const at::Tensor& a, const at::Tensor& b, const std::string& what) const {
    if (GetParam().dtype == at::kBFloat16)
      EXPECT_TRUE(at::equal(a, b)) << what << ", " << llama_.kernels();
    else
      EXPECT_TRUE(at::allclose(a, b, 1e-5, 1e-5)) << what;
  }

  Weights weights_;
  Llama llama_;
};

INSTANTIATE_TEST_SUITE_P(Types, BackboneTargets, testing::ValuesIn(every_setup()),
                         [](const auto& each) { return each.param.name; });

TokenId random_token(uint64_t seed, int64_t position) {
  return static_cast<TokenId>(130 * Random(seed).uniform(RandomUse::Init, position));
}

/// A tree in which any earlier node may be the parent, the last ones more often: deep and wide.
CandidateTree random_tree(uint64_t seed, int32_t size) {
  CandidateTree tree = root_only(random_token(seed, 1000));
  while (tree.size() < size) {
    const double u = Random(seed).uniform(RandomUse::Draft, tree.size());
    tree.parents.push_back(static_cast<int32_t>((1 - u * u) * tree.size()));
    tree.tokens.push_back(random_token(seed, 1000 + tree.size()));
  }
  tree.num_verify = size;
  return tree;
}

/// Nodes from the root to a node.
std::vector<int32_t> path_to(const CandidateTree& tree, int32_t node) {
  std::vector<int32_t> path;
  for (; node >= 0; node = tree.parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
  return path;
}

CandidateTree chain_of(const CandidateTree& tree, const std::vector<int32_t>& path) {
  CandidateTree chain;
  for (const int32_t node : path) {
    chain.parents.push_back(chain.size() - 1);
    chain.tokens.push_back(tree.tokens[static_cast<size_t>(node)]);
  }
  chain.num_verify = chain.size();
  return chain;
}

/// Copies, as the views go with the next pass.
TargetOutput run(BackboneTarget& target, int32_t slot, const CandidateTree& tree) {
  const SlotTree each{slot, &tree};
  const TargetOutput out = target.forward({&each, 1}).at(0);
  return {out.logits.clone(), out.hidden.clone()};
}

TEST_P(BackboneTargets, ANodesLogitsAreThoseOfItsPathRunAlone) {
  for (const int64_t prompt : {1, 37}) {
    BackboneTarget target(llama_, 1, kRows);
    const int32_t slot = target.open();
    target.prefill(slot, random_tokens(3, prompt));
    for (const int32_t size : {1, 2, 7, 16, 33, 64}) {
      const CandidateTree tree = random_tree(static_cast<uint64_t>(size), size);
      const TargetOutput for_batch = run(target, slot, tree);
      EXPECT_EQ(for_batch.logits.sizes(), (at::IntArrayRef{size, 130}));
      EXPECT_EQ(for_batch.logits.scalar_type(), at::kFloat);
      EXPECT_EQ(for_batch.hidden.sizes(), (at::IntArrayRef{size, 64}));
      for (int32_t node = 0; node < size; ++node) {
        const TargetOutput alone = run(target, slot, chain_of(tree, path_to(tree, node)));
        const std::string what = "node " + std::to_string(node) + " of " + std::to_string(size);
        expect_same(for_batch.logits[node], alone.logits[-1], what);
        expect_same(for_batch.hidden[node], alone.hidden[-1], what);
      }
    }
  }
}

TEST_P(BackboneTargets, AChainsLogitsAreThoseOfItsTokensOneByOne) {
  BackboneTarget target(llama_, 2, kRows);
  const int32_t for_batch = target.open(), stepwise = target.open();
  for (const int32_t slot : {for_batch, stepwise}) target.prefill(slot, random_tokens(3, 20));
  CandidateTree tree = random_tree(5, 20);
  for (int32_t i = 0; i < tree.size(); ++i) tree.parents[static_cast<size_t>(i)] = i - 1;
  const TargetOutput whole = run(target, for_batch, tree);
  const std::vector<int32_t> root{0};
  for (int32_t i = 0; i < tree.size(); ++i) {
    const TargetOutput step = run(target, stepwise, root_only(tree.tokens[static_cast<size_t>(i)]));
    target.commit(stepwise, root);
    expect_same(whole.logits[i], step.logits[0], "token " + std::to_string(i));
  }
}

TEST_P(BackboneTargets, AfterCommitTheCacheIsAFreshPrefill) {
  BackboneTarget target(llama_, 2, kRows);
  const int32_t grown = target.open();
  std::vector<TokenId> text = random_tokens(4, 25);
  target.prefill(grown, text);
  for (uint64_t step = 0; step < 8; ++step) {
    const CandidateTree tree = random_tree(100 + step, 24);
    run(target, grown, tree);
    const std::vector<int32_t> path = path_to(tree, 23 - static_cast<int32_t>(step));
    target.commit(grown, path);
    for (const int32_t node : path) text.push_back(tree.tokens[static_cast<size_t>(node)]);
    EXPECT_EQ(target.cache().length(grown), static_cast<int64_t>(text.size()));

    const int32_t fresh = target.open();
    target.prefill(fresh, text);
    const CandidateTree next = random_tree(200 + step, 5);
    expect_same(run(target, grown, next).logits, run(target, fresh, next).logits,
                "after step " + std::to_string(step));
    target.close(fresh);
  }
}

TEST_P(BackboneTargets, APromptThatBeginsLikeAnotherGivesTheSameRowsAsAlone) {
  std::vector<TokenId> first = random_tokens(21, 60), second = random_tokens(22, 60);
  std::copy(first.begin(), first.begin() + 37, second.begin());  // no multiple of 16
  BackboneTarget alone(llama_, 1, kRows), for_batch(llama_, 3, kRows);
  const int32_t slot = alone.open();
  const at::Tensor expected = alone.prefill(slot, second);
  for_batch.prefill(for_batch.open(), first);
  const int32_t sharing = for_batch.open();
  expect_same(for_batch.prefill(sharing, second), expected, "state of the last token");
  expect_same(for_batch.prefill(for_batch.open(), second), expected, "the same prompt once more");
  EXPECT_EQ(for_batch.cache().length(sharing), 60);

  const CandidateTree tree = random_tree(23, 9);
  const SlotTree there{slot, &tree}, here{sharing, &tree};
  const at::Tensor logits = alone.forward({&there, 1}).front().logits.clone();
  expect_same(for_batch.forward({&here, 1}).front().logits, logits, "logits of the next step");
}

TEST_P(BackboneTargets, AFailedStepsRowsAreForgotten) {
  BackboneTarget target(llama_, 1, kRows);
  const int32_t slot = target.open();
  target.prefill(slot, random_tokens(4, 25));
  const CandidateTree tree = random_tree(7, 9);
  const at::Tensor expected = run(target, slot, tree).logits;
  run(target, slot, random_tree(8, 40));  // no commit
  EXPECT_TRUE(at::equal(run(target, slot, tree).logits, expected));
}

TEST_P(BackboneTargets, ATreesLogitsDoNotDependOnTheSequencesBesideIt) {
  BackboneTarget target(llama_, 8, kRows);
  std::vector<CandidateTree> trees;
  std::vector<SlotTree> batch;
  const std::vector<int32_t> sizes{16, 1, 33, 7, 64, 2, 5, 12};
  for (size_t i = 0; i < sizes.size(); ++i) trees.push_back(random_tree(50 + i, sizes[i]));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int32_t slot = target.open();
    target.prefill(slot, random_tokens(i, 3 + 11 * static_cast<int64_t>(i)));
    batch.push_back({slot, &trees[i]});
  }
  std::vector<at::Tensor> for_batch;
  for (const TargetOutput& out : target.forward(batch)) for_batch.push_back(out.logits.clone());
  for (size_t i = 0; i < sizes.size(); ++i)
    expect_same(for_batch[i], run(target, batch[i].slot, trees[i]).logits,
                "sequence " + std::to_string(i));
}

std::vector<ChoiceTree> some_trees() {
  std::vector<RankPath> wide, mixed;
  for (int32_t rank = 0; rank < 40; ++rank) wide.push_back({rank});
  for (int32_t rank = 0; rank < 12; ++rank) mixed.push_back({rank});
  for (int32_t a = 0; a < 5; ++a)
    for (int32_t b = 0; b < 5; ++b) mixed.push_back({a, b});
  for (int32_t b = 0; b < 5; ++b)
    for (int32_t c = 0; c < 4; ++c) mixed.push_back({0, b, c});
  return {make_choice_tree({{0}}, 40, "one"), make_choice_tree(wide, 40, "wide"),
          make_choice_tree(mixed, 40, "mixed")};
}

std::vector<TokenId> decode_text(TargetModel& target, const AcceptanceRule& rule,
                                 const DrafterFactory& drafter, const std::vector<TokenId>& prompt,
                                 uint64_t seed, int64_t* accepted = nullptr) {
  std::vector<TokenId> text;
  DecodeRequest request{prompt, {24, 64, {}}, Random(seed), {}};
  request.emit = [&](const EmittedToken& token) {
    text.push_back(token.id);
    return true;
  };
  const DecodeResult result = decode_one(target, rule, drafter, request);
  if (accepted != nullptr) *accepted += result.stats.accepted;
  return text;
}

DrafterFactory none() {
  return [] { return std::make_unique<NoneDrafter>(); };
}

TEST_P(BackboneTargets, MedusaGivesThePlainGreedyText) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  BackboneTarget target(llama_, 1, kRows);
  int64_t accepted = 0;
  for (const ChoiceTree& tree : some_trees()) {
    const TreeShape shape = tree.shape();
    const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto prompt = random_tokens(seed, 1 + 10 * static_cast<int64_t>(seed));
      EXPECT_EQ(decode_text(target, GreedyRule(), medusa, prompt, 1, &accepted),
                decode_text(target, GreedyRule(), none(), prompt, 1))
          << tree.paths.size() << " paths, prompt " << seed;
    }
  }
  EXPECT_GT(accepted, 5);
}

TEST_P(BackboneTargets, MedusaGivesThePlainSampledTextOfTheSeed) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  BackboneTarget target(llama_, 1, kRows);
  const MatchRule rule({.temperature = 0.7});
  const auto prompt = random_tokens(1, 12);
  int64_t accepted = 0;
  for (const ChoiceTree& tree : some_trees()) {
    const TreeShape shape = tree.shape();
    const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_EQ(decode_text(target, rule, medusa, prompt, seed, &accepted),
                decode_text(target, rule, none(), prompt, seed))
          << tree.paths.size() << " paths, seed " << seed;
  }
  EXPECT_GT(accepted, 10);
}

TEST_P(BackboneTargets, BatchesGiveTheTextsDecodedAlone) {
  constexpr size_t kRequests = 9;
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  const MatchRule rule({.temperature = 0.7});
  std::vector<std::vector<TokenId>> alone;
  BackboneTarget single(llama_, 1, kRows);
  for (size_t i = 0; i < kRequests; ++i)
    alone.push_back(decode_text(single, rule, medusa,
                                random_tokens(i, 1 + static_cast<int64_t>(5 * i)), 60 + i));
  for (const int32_t slots : {1, 3, 8}) {
    BackboneTarget target(llama_, slots, kRows);
    std::vector<std::vector<TokenId>> texts(kRequests);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == kRequests) return std::nullopt;
      const size_t i = taken++;
      return DecodeRequest{random_tokens(i, 1 + static_cast<int64_t>(5 * i)),
                           {24, 64, {}},
                           Random(60 + i),
                           [&texts, i](const EmittedToken& token) {
                             texts[i].push_back(token.id);
                             return true;
                           }};
    };
    decode(target, rule, medusa, next, [](size_t, const DecodeStats&) { return true; });
    EXPECT_EQ(texts, alone) << slots << " slots";
  }
}

TEST_P(BackboneTargets, TheContextEndsTheTextWithAFullCache) {
  // 45 rows of a cache whose memory is rounded up to 64: the text ends at 45 all the same.
  BackboneTarget target(llama_, 1, 45);
  std::vector<TokenId> text;
  DecodeRequest request{random_tokens(2, 30), {100, 64, {}}, Random(1), {}};
  request.emit = [&](const EmittedToken& token) {
    EXPECT_EQ(token.output->logits[token.row].argmax().item<int64_t>(), token.id);
    text.push_back(token.id);
    return true;
  };
  const DecodeResult result = decode_one(target, GreedyRule(), none(), request);
  EXPECT_EQ(result.stats.finish, FinishReason::Context);
  EXPECT_EQ(text.size(), 16U);
  EXPECT_THROW(BackboneTarget(llama_, 1, 1025), std::logic_error) << "beyond the model's context";
}

TEST_P(BackboneTargets, RewindRepeatsAStepBitForBit) {
  BackboneTarget target(llama_, 1, kRows);
  const int32_t slot = target.open();
  target.prefill(slot, random_tokens(4, 25));
  const CandidateTree tree = random_tree(7, 9);
  const at::Tensor first = run(target, slot, tree).logits;
  target.commit(slot, path_to(tree, 8));
  target.rewind(slot, 25);
  EXPECT_TRUE(at::equal(run(target, slot, tree).logits, first));
}

/// Decodes behind a prompt in the next step of a conversation.
struct Turn {
  std::vector<TokenId> text;  // prompt and answer
  std::vector<at::Tensor> logits;
  DecodeStats stats;
};

Turn take_turn(BackboneTarget& target, const AcceptanceRule& rule, const DrafterFactory& drafter,
               std::vector<TokenId> prompt) {
  Turn turn{prompt, {}, {}};
  DecodeRequest request{std::move(prompt), {24, 64, {}}, Random(1), {}};
  request.emit = [&turn](const EmittedToken& token) {
    turn.text.push_back(token.id);
    turn.logits.push_back(token.output->logits[token.row].clone());
    return true;
  };
  turn.stats = decode_one(target, rule, drafter, std::move(request)).stats;
  return turn;
}

TEST_P(BackboneTargets, AConversationsNextPromptBeginsWithTheLastOneAndItsAnswer) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  BackboneTarget target(llama_, 2, kRows);
  std::vector<TokenId> prompt = random_tokens(31, 50);
  int64_t cached = 0;
  for (uint64_t turn = 0; turn < 3; ++turn) {
    // Answered with trees, so that rows of other turns were moved when they were committed.
    const Turn here = take_turn(target, GreedyRule(), medusa, prompt);
    BackboneTarget fresh(llama_, 1, kRows);
    const Turn alone = take_turn(fresh, GreedyRule(), medusa, prompt);
    EXPECT_EQ(alone.stats.cached_prompt_tokens, 0);
    ASSERT_EQ(here.text, alone.text) << "turn " << turn;
    for (size_t i = 0; i < here.logits.size(); ++i)
      expect_same(here.logits[i], alone.logits[i], "logits of token " + std::to_string(i));
    EXPECT_EQ(here.stats.cached_prompt_tokens, llama_.rows_are_independent() ? cached : 0);
    cached = (std::ssize(here.text) - 1) / 32 * 32;  // full blocks; the last token has no row
    EXPECT_EQ(target.cache_use().blocks_kept, llama_.rows_are_independent() ? cached / 32 : 0);
    prompt = here.text;
    const std::vector<TokenId> question = random_tokens(40 + turn, 17);
    prompt.insert(prompt.end(), question.begin(), question.end());
  }
}

TEST_P(BackboneTargets, SixteenShortSequencesTakeTheMemoryOfWhatTheyHold) {
  Llama& llama = llama_;
  const int64_t context = llama.config().context;
  BackboneTarget target(llama, 16, context);
  const int64_t whole = 16 * llama.cache_bytes(context), block = llama.cache_bytes(32);
  ASSERT_EQ(whole, 16 * context / 32 * block);
  EXPECT_EQ(target.cache().bytes(), 0);
  std::vector<int32_t> slots;
  for (uint64_t i = 0; i < 16; ++i) {
    slots.push_back(target.open());
    target.prefill(slots.back(), random_tokens(100 + i, 40));
  }
  EXPECT_EQ(target.cache_use().blocks_used, 32);
  EXPECT_EQ(target.cache().bytes(), 32 * block) << "of " << whole;
  for (const int32_t slot : slots) target.close(slot);
  EXPECT_EQ(target.cache_use().blocks_used, 0);
}

TEST_P(BackboneTargets, ASmallPoolGivesTheTextsOfALargeOne) {
  constexpr size_t kRequests = 7;
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  std::vector<std::vector<std::vector<TokenId>>> texts;
  // Requests need up to 5 of the 8 blocks: of four slots one or two are in use, and nothing stays
  // in the cache for long.
  for (const bool small : {false, true}) {
    BackboneTarget target(llama_, 4, kRows,
                          small ? std::optional(8 * llama_.cache_bytes(32)) : std::nullopt);
    auto& all = texts.emplace_back(kRequests);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == kRequests) return std::nullopt;
      const size_t i = taken++;
      return DecodeRequest{random_tokens(i % 3, 20 + static_cast<int64_t>(6 * i)),
                           {24, 64, {}},
                           Random(60 + i),
                           [&all, i](const EmittedToken& token) {
                             all[i].push_back(token.id);
                             return true;
                           }};
    };
    decode(target, GreedyRule(), medusa, next, [&](size_t, const DecodeStats&) {
      EXPECT_LE(target.cache_use().blocks_used, target.cache_use().blocks_total);
      return true;
    });
    EXPECT_EQ(target.cache_use().blocks_used, 0);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

/// In one pass with others, who ask for other layers or none.
TEST_P(BackboneTargets, EveryoneGetsTheFeaturesThatHeAskedFor) {
  BackboneTarget target(llama_, 4, kRows);
  const std::vector<TokenId> prompt = random_tokens(7, 30), chunk = random_tokens(8, 11);
  std::vector<int32_t> slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(target.open());
    target.prefill(slots.back(), prompt);
  }
  const CandidateTree tree{{5, 6, 7, 8}, {-1, 0, 0, 2}, 4, {}};
  const std::vector<int32_t> first{0, 2}, second{1};
  const std::vector<SlotTree> trees{
      {slots[0], &tree, first}, {slots[1], &tree}, {slots[2], &tree, second}};
  const std::vector<PromptChunk> chunks{{target.open(), chunk, false, second}};
  const PassOutput output = target.forward(trees, chunks);
  EXPECT_FALSE(output.trees[1].features.defined());

  const auto alone = [&](std::span<const TokenId> before, std::span<const TokenId> tokens,
                         std::span<const int32_t> parents, std::vector<int32_t> layers) {
    KvCache cache = llama_.make_cache(1, kRows);
    const int32_t slot = cache.open();
    if (!before.empty()) llama_.prefill(slot, before, cache);
    Features features{std::move(layers), std::vector<int32_t>(tokens.size())};
    std::iota(features.rows.begin(), features.rows.end(), 0);
    const Segment segment{slot, tokens, parents};
    llama_.forward({&segment, 1}, cache, {}, &features);
    return features.values;
  };
  const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
    return llama_.rows_are_independent() ? at::equal(a, b) : at::allclose(a, b, 0.02, 0.02);
  };
  EXPECT_TRUE(same(output.trees[0].features, alone(prompt, tree.tokens, tree.parents, {0, 2})));
  EXPECT_TRUE(same(output.trees[2].features, alone(prompt, tree.tokens, tree.parents, {1})));
  EXPECT_TRUE(same(output.prompt_features[0], alone({}, chunk, {}, {1})));
}

}  // namespace
}  // namespace medusa
