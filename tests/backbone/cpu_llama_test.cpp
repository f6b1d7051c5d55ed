#include "backbone/cpu/cpu_llama.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "backbone/cpu/threads/thread_pool.h"
#include "backbone/llama.h"
#include "tests/backbone/cpu_isas.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

/// Three heads a group, so that the heads of one row straddle tiles of 16 queries.
ModelConfig straddling_config() {
  ModelConfig config = tiny_config();
  config.hidden_size = 96;
  config.num_heads = 6;
  config.head_size = 64;
  config.mlp_size = 80;
  return config;
}

ModelConfig biased_config() {
  ModelConfig config = straddling_config();
  config.qkv_bias = true;
  config.rope_factors = std::vector<double>(32, 1.0);
  for (size_t i = 20; i < 32; ++i) config.rope_factors[i] = 8.0;
  return config;
}

/// Heads that turn in part.
ModelConfig partial_config() {
  ModelConfig config = straddling_config();
  config.rotary_dim = 48;
  config.rope_factors = std::vector<double>(24, 2.0);
  return config;
}

std::vector<ModelConfig> every_config() {
  return {tiny_config(), straddling_config(), biased_config(), partial_config(),
          uneven_config(straddling_config())};
}

struct Tree {
  std::vector<TokenId> tokens;
  std::vector<int32_t> parents;

  Segment segment(int32_t slot) const { return {slot, tokens, parents}; }
  std::vector<int32_t> path_to(int32_t node) const {
    std::vector<int32_t> path;
    for (; node >= 0; node = parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
    return path;
  }
};

std::vector<TokenId> random_tokens(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 130);
  return tokens;
}

Tree random_tree(int32_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Tree tree{random_tokens(size, seed + 1), {-1}};
  for (int32_t i = 1; i < size; ++i)
    tree.parents.push_back(std::max(
        0, i - 1 - static_cast<int32_t>(random() % static_cast<uint32_t>(std::min(i, 5)))));
  return tree;
}

struct Output {
  at::Tensor hidden, logits;

  bool same_row(int64_t row, const Output& other, int64_t other_row) const {
    return at::equal(hidden[row], other.hidden[other_row]) &&
           at::equal(logits[row], other.logits[other_row]);
  }
};

/// A model on our CPU kernels, with its cache.
class Runner {
 public:
  Runner(const Weights& weights, const CpuKernels& kernels, int32_t num_slots = 1, int threads = 1)
      : model_(make_cpu_llama(weights, kernels, std::make_shared<ThreadPool>(threads))),
        cache_(weights.config, num_slots, 512, at::kBFloat16, at::kCPU, KvLayout::Tiles) {
    for (const LayerWeights& layer : weights.layers) model_->add_layer(layer);
    layers_.resize(static_cast<size_t>(weights.config.num_layers));
    std::iota(layers_.begin(), layers_.end(), 0);
    for (int32_t slot = 0; slot < num_slots; ++slot) cache_.open();
  }

  Output run(std::span<const Segment> segments) {
    const c10::InferenceMode no_grad;
    const at::Tensor hidden =
        model_->forward(plan_forward(segments, cache_), cache_, layers_, nullptr);
    return {hidden.clone(), model_->logits(hidden).clone()};
  }
  Output run(const Segment& segment) { return run({&segment, 1}); }

  /// The residual stream of all rows before some layers.
  at::Tensor features(const Segment& segment, const std::vector<int32_t>& layers) {
    const c10::InferenceMode no_grad;
    Features asked{layers, std::vector<int32_t>(segment.tokens.size())};
    std::iota(asked.rows.begin(), asked.rows.end(), 0);
    model_->forward(plan_forward({&segment, 1}, cache_), cache_, layers_, &asked);
    return asked.values;
  }

  void commit_all(int32_t slot, int64_t count) {
    std::vector<int32_t> rows(static_cast<size_t>(count));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    cache_.commit(slot, rows);
  }
  void fill(int32_t slot, int64_t count, uint32_t seed) {
    if (count == 0) return;
    const auto tokens = random_tokens(count, seed);
    run(Segment{slot, tokens, {}});
    commit_all(slot, count);
  }

  /// Decodes the tokens one at a time behind the committed rows, and forgets them.
  std::vector<Output> decode(int32_t slot, std::span<const TokenId> tokens) {
    const int64_t start = cache_.length(slot);
    std::vector<Output> outputs;
    for (const TokenId& token : tokens) {
      outputs.push_back(run(Segment{slot, {&token, 1}, {}}));
      commit_all(slot, 1);
    }
    cache_.rewind(slot, start);
    return outputs;
  }

  KvCache& cache() { return cache_; }

 private:
  std::vector<int32_t> layers_;  // all
  std::unique_ptr<LlamaBackend> model_;
  KvCache cache_;
};

/// In the form that these kernels multiply.
Weights weights_for(const CpuKernels& kernels, uint64_t seed, const ModelConfig& config) {
  Weights weights = tiny_weights(seed, config, at::kBFloat16);
  return kernels.quantize != nullptr ? quantized(std::move(weights)) : weights;
}

TEST(CpuLlamaTest, AgreesWithTheReferenceWithinRounding) {
  for (const ModelConfig& config : every_config())
    for (const CpuKernels* kernels : pass_kernels()) {
      const Weights weights = weights_for(*kernels, 1, config);
      Llama plain(weights, Kernels::Reference);
      KvCache cache = plain.make_cache(1, 512);
      Runner fused(weights, *kernels);
      const auto prompt = random_tokens(37, 5);
      plain.prefill(cache.open(), prompt, cache);
      fused.fill(0, 37, 5);
      const Tree tree = random_tree(20, 6);
      const Segment segment = tree.segment(0);
      const at::Tensor hidden = plain.forward({&segment, 1}, cache);
      const at::Tensor logits = plain.logits(hidden);
      const Output output = fused.run(segment);
      EXPECT_EQ(output.hidden.scalar_type(), at::kBFloat16);
      // bfloat16 keeps 8 bits: a rounding step is 0.8 % of numbers near 1. Where rows are rounded
      // to quants too, some fall to the other side.
      const auto layers = static_cast<float>(config.num_layers);
      EXPECT_LT((output.hidden.to(at::kFloat) - hidden.to(at::kFloat)).abs().mean().item<float>(),
                layers * (kernels->quantize != nullptr ? 0.01F : 0.005F))
          << kernels->name;
      EXPECT_LT((output.logits - logits).abs().max().item<float>(),
                layers * (kernels->quantize != nullptr ? 0.06F : 0.04F))
          << kernels->name;
    }
}

TEST(CpuLlamaTest, FeaturesAgreeWithTheReferenceForAnyNumberOfThreads) {
  const std::vector<int32_t> layers{0, 1, 2};
  for (const CpuKernels* kernels : pass_kernels()) {
    const Weights weights = weights_for(*kernels, 1, straddling_config());
    Llama plain(weights, Kernels::Reference);
    KvCache cache = plain.make_cache(1, 512);
    const Tree tree = random_tree(20, 6);
    const Segment segment{cache.open(), tree.tokens, tree.parents};
    Features expected{layers, std::vector<int32_t>(20)};
    std::iota(expected.rows.begin(), expected.rows.end(), 0);
    plain.forward({&segment, 1}, cache, {}, &expected);
    Runner fused(weights, *kernels), threads(weights, *kernels, 1, 3);
    const at::Tensor features = fused.features(tree.segment(0), layers);
    EXPECT_LT((features - expected.values).abs().mean().item<float>(),
              kernels->quantize != nullptr ? 0.02F : 0.01F)
        << kernels->name;
    EXPECT_TRUE(at::equal(threads.features(tree.segment(0), layers), features)) << kernels->name;
  }
}

TEST(CpuLlamaTest, EveryNodeEqualsItsPathDecodedAlone) {
  for (const ModelConfig& config : every_config())
    for (const CpuKernels* kernels : pass_kernels()) {
      Runner runner(weights_for(*kernels, 2, config), *kernels);
      for (const int64_t start : {0, 5, 31, 32, 300}) {
        runner.cache().rewind(0, 0);
        runner.fill(0, start, 7);
        for (const int32_t size : {1, 2, 7, 16, 33, 64}) {
          if (config.qk_norm && size != 7 && size != 33) continue;  // it has twice the layers
          const Tree tree = random_tree(size, 8 + static_cast<uint32_t>(size));
          const Output together = runner.run(tree.segment(0));
          for (int32_t node = 0; node < size; ++node) {
            const auto path = tree.path_to(node);
            std::vector<TokenId> tokens;
            for (const int32_t i : path) tokens.push_back(tree.tokens[static_cast<size_t>(i)]);
            const Output chain = runner.run(Segment{0, tokens, {}});
            const auto last = static_cast<int64_t>(path.size()) - 1;
            ASSERT_TRUE(together.same_row(node, chain, last))
                << kernels->name << ", start " << start << ", node " << node << " of " << size;
            if (node % 7 != 0) continue;  // the slowest comparison, on some nodes
            const auto alone = runner.decode(0, tokens);
            ASSERT_TRUE(together.same_row(node, alone.back(), 0))
                << kernels->name << ", start " << start << ", node " << node << " of " << size;
          }
        }
      }
    }
}

/// The logits of a tree behind a prompt, on every row.
at::Tensor tree_logits(const CpuKernels& kernels, const ModelConfig& config) {
  Runner runner(weights_for(kernels, 7, config), kernels);
  runner.fill(0, 45, 14);
  return runner.run(random_tree(33, 15).segment(0)).logits;
}

TEST(CpuLlamaTest, Avx2GivesTheBitsOfAvx512AndPortableTheirNumbers) {
  const std::vector<std::vector<const CpuKernels*>> kinds = {
      {portable_kernels(), avx2_kernels(), avx512_kernels()},
      {portable_quant_kernels(), avx2_quant_kernels(), vnni_kernels(), amx_quant_kernels(),
       emulated_amx_quant_kernels()}};
  for (const ModelConfig& config : every_config())
    for (const auto& tables : kinds) {
      const at::Tensor plain = tree_logits(*tables[0], config);
      at::Tensor first;
      for (const CpuKernels* kernels : tables) {
        if (kernels == nullptr || kernels == tables[0]) continue;
        const at::Tensor logits = tree_logits(*kernels, config);
        // Keys and values that fall to the other side when rounded to bfloat16; quantized, quants.
        const auto layers = static_cast<float>(config.num_layers);
        const bool quantized = kernels->quantize != nullptr;
        EXPECT_LT((logits - plain).abs().max().item<float>(), layers * (quantized ? 0.06F : 0.02F))
            << kernels->name;
        EXPECT_LT((logits - plain).abs().mean().item<float>(), layers * (quantized ? .01F : .001F))
            << kernels->name;
        if (first.defined()) {
          EXPECT_TRUE(at::equal(logits, first)) << kernels->name;
        }
        first = logits;
      }
    }
}

TEST(CpuLlamaTest, SlotsOfOnePassDoNotDisturbEachOther) {
  for (const CpuKernels* kernels : pass_kernels()) {
    Runner runner(weights_for(*kernels, 3, straddling_config()), *kernels, 5);
    std::vector<Tree> trees;
    std::vector<Segment> segments;
    for (uint32_t i = 0; i < 5; ++i)
      trees.push_back(random_tree(1 + 9 * static_cast<int32_t>(i), i));
    for (const int32_t slot : {3, 0, 4, 1, 2}) {
      runner.fill(slot, 29 * slot, 40 + static_cast<uint32_t>(slot));
      segments.push_back(trees[static_cast<size_t>(slot)].segment(slot));
    }
    const Output together = runner.run(segments);
    int64_t row = 0;
    for (const Segment& segment : segments) {
      const Output alone = runner.run(segment);
      for (int64_t i = 0; i < alone.hidden.size(0); ++i, ++row)
        ASSERT_TRUE(together.same_row(row, alone, i)) << kernels->name << ", slot " << segment.slot;
    }
  }
}

// Sequences that grow by turns get blocks by turns, in several slabs.
TEST(CpuLlamaTest, ScatteredBlocksGiveTheBitsOfNeighbors) {
  for (const CpuKernels* kernels : pass_kernels()) {
    const Weights weights = weights_for(*kernels, 5, straddling_config());
    Runner scattered(weights, *kernels, 3), whole(weights, *kernels);
    for (uint32_t round = 0; round < 10; ++round) {
      for (const int32_t slot : {0, 1, 2})
        scattered.fill(slot, 32, 3 * round + (slot == 1 ? 0 : 1));
      whole.fill(0, 32, 3 * round);
    }
    const auto neighbors = [](Runner& runner, int32_t slot) {
      const auto blocks = runner.cache().tiles(slot);
      int64_t count = 0;
      for (size_t i = 1; i < blocks.size(); ++i)
        count += blocks[i] - blocks[i - 1] == runner.cache().strides().block ? 1 : 0;
      return count;
    };
    EXPECT_EQ(neighbors(scattered, 1), 0);
    EXPECT_GE(neighbors(whole, 0), 8);
    const auto contiguous = random_tokens(40, 77);
    const Tree tree = random_tree(23, 78);
    for (const auto& [segment, alone] :
         {std::pair(Segment{1, contiguous, {}}, Segment{0, contiguous, {}}),
          std::pair(tree.segment(1), tree.segment(0))}) {
      const Output a = scattered.run(segment), b = whole.run(alone);
      EXPECT_TRUE(at::equal(a.hidden, b.hidden)) << kernels->name;
      EXPECT_TRUE(at::equal(a.logits, b.logits)) << kernels->name;
    }
  }
}

TEST(CpuLlamaTest, ThreadsDoNotChangeTheResultsNorRace) {
  for (const CpuKernels* kernels : pass_kernels()) {
    const Weights weights = weights_for(*kernels, 4, tiny_config());
    const Tree tree = random_tree(33, 9);
    Runner one(weights, *kernels);
    one.fill(0, 45, 10);
    const Output expected = one.run(tree.segment(0));
    for (const int threads : {2, 3}) {
      Runner several(weights, *kernels, 1, threads);
      several.fill(0, 45, 10);
      for (int repetition = 0; repetition < 50; ++repetition) {
        const Output output = several.run(tree.segment(0));
        ASSERT_TRUE(at::equal(output.hidden, expected.hidden)) << threads;
        ASSERT_TRUE(at::equal(output.logits, expected.logits)) << threads;
      }
    }
  }
}

TEST(CpuLlamaTest, CommittedNodesEqualAFreshPrompt) {
  for (const CpuKernels* kernels : pass_kernels()) {
    const Weights weights = weights_for(*kernels, 5, tiny_config());
    const Tree tree = random_tree(40, 11);
    const auto path = tree.path_to(39);
    auto tokens = random_tokens(30, 12);
    Runner decoded(weights, *kernels);
    decoded.fill(0, 30, 12);
    decoded.run(tree.segment(0));
    decoded.cache().commit(0, path);
    for (const int32_t node : path) tokens.push_back(tree.tokens[static_cast<size_t>(node)]);
    Runner fresh(weights, *kernels);
    fresh.run(Segment{0, tokens, {}});
    fresh.commit_all(0, static_cast<int64_t>(tokens.size()));
    const std::vector<TokenId> next{77};
    ASSERT_LT(path.size(), 40U);
    EXPECT_TRUE(decoded.run(Segment{0, next, {}}).same_row(0, fresh.run(Segment{0, next, {}}), 0));
  }
}

TEST(CpuLlamaTest, ManyRowsInOnePassEqualFewerAtATime) {
  for (const CpuKernels* kernels : pass_kernels()) {
    const Weights weights = weights_for(*kernels, 6, straddling_config());
    Runner whole(weights, *kernels), pieces(weights, *kernels);
    const auto tokens = random_tokens(300, 13);
    const Output together = whole.run(Segment{0, tokens, {}});
    int64_t row = 0;
    for (const int64_t count : {100, 1, 17, 64, 118}) {
      const Output piece = pieces.run(Segment{
          0, std::span(tokens).subspan(static_cast<size_t>(row), static_cast<size_t>(count)), {}});
      pieces.commit_all(0, count);
      for (int64_t i = 0; i < count; ++i, ++row)
        ASSERT_TRUE(together.same_row(row, piece, i)) << kernels->name << ", row " << row;
    }
  }
}

TEST(CpuLlamaTest, IsOfferedForTheSizesAndDtypeItIsWrittenFor) {
  EXPECT_TRUE(cpu_llama_supports(tiny_weights(1, tiny_config(), at::kBFloat16), CpuIsa::Auto));
  EXPECT_FALSE(cpu_llama_supports(tiny_weights(1), CpuIsa::Auto));  // float32
  EXPECT_TRUE(
      cpu_llama_supports(quantized(tiny_weights(1, tiny_config(), at::kBFloat16)), CpuIsa::Auto));
  for (const CpuIsa isa : kCpuIsas) {
    const Weights weights = tiny_weights(1, tiny_config(), at::kBFloat16);
    EXPECT_EQ(cpu_llama_supports(weights, isa), kernels_for(isa, false) != nullptr);
    if (!cpu_llama_supports(weights, isa)) continue;
    EXPECT_STREQ(make_cpu_llama(weights, ExecutionContext({.isa = isa}))->name(),
                 kernels_for(isa, false)->name);
  }
  ModelConfig config = tiny_config();
  config.head_size = 16;
  EXPECT_FALSE(cpu_llama_supports(tiny_weights(1, config, at::kBFloat16), CpuIsa::Auto));
  config = tiny_config();
  config.hidden_size = 72;
  EXPECT_FALSE(cpu_llama_supports(tiny_weights(1, config, at::kBFloat16), CpuIsa::Auto));
}

}  // namespace
}  // namespace medusa
