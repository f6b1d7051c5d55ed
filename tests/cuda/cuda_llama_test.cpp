#include "backbone/cuda/cuda_llama.h"

#include <set>

#include "backbone/llama.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/base/error_text.h"
#include "tests/cuda/device_models.h"
#include "tests/cuda/every_device.h"

namespace medusa {
namespace {

class CudaLlamaTest : public OnEveryDevice {
 protected:
  static Llama on_device(const ModelConfig& config) {
    return llama_on_kernels(device_weights(1, config, device()));
  }
  static Llama plain(const ModelConfig& config) {
    return Llama(device_weights(1, config, device()), Kernels::Reference);
  }
  /// The same weights in float32.
  static Llama exact(const ModelConfig& config) {
    Weights weights = device_weights(1, config, device());
    for (at::Tensor* each : {&weights.embedding, &weights.final_norm, &weights.lm_head})
      *each = each->to(at::kFloat);
    for (LayerWeights& layer : weights.layers)
      for (const LayerPart& part : kLayerParts)
        if ((layer.*part.tensor).defined())
          layer.*part.tensor = (layer.*part.tensor).to(at::kFloat);
    return Llama(std::move(weights), Kernels::Reference);
  }
};

/// A prompt, then a tree behind it.
struct Pass {
  std::vector<TokenId> prompt, tokens;
  std::vector<int32_t> parents;
};

Pass some_pass(int64_t prompt, int64_t nodes) {
  Pass pass{random_tokens(3, prompt), random_tokens(4, nodes), {}};
  for (int32_t i = 0; i < nodes; ++i)
    pass.parents.push_back(i == 0 ? -1
                                  : static_cast<int32_t>(Random(5).bits(RandomUse::Draft, i) %
                                                         static_cast<uint64_t>(i)));
  return pass;
}

/// [nodes, V] on the CPU.
at::Tensor run(Llama& llama, const Pass& pass) {
  KvCache cache = llama.make_cache(1, 400);
  const int32_t slot = cache.open();
  llama.prefill(slot, pass.prompt, cache);
  const Segment tree{slot, pass.tokens, pass.parents};
  return llama.logits(llama.forward({&tree, 1}, cache)).cpu().clone();
}

TEST_P(CudaLlamaTest, AgreesWithTheReference) {
  for (const ModelConfig& config : {device_config(), device_config(6, 2), device_config(2, 2),
                                    uneven_config(device_config())}) {
    Llama device = on_device(config), reference = plain(config), wide = exact(config);
    EXPECT_STREQ(device.kernels(), kernels().layers->name);
    const Pass pass = some_pass(150, 12);
    const at::Tensor expected = run(wide, pass), error = (run(device, pass) - expected).abs(),
                     reference_error = (run(reference, pass) - expected).abs();
    EXPECT_LT(error.max().item<float>(), 0.12) << config.num_heads;
    EXPECT_LT(error.mean().item<float>(), reference_error.mean().item<float>())
        << config.num_heads << ": rounds more than LibTorch's bfloat16";
  }
}

TEST_P(CudaLlamaTest, FeaturesAgreeWithTheReference) {
  const ModelConfig config = uneven_config(device_config());
  const std::vector<TokenId> tokens = random_tokens(3, 60);
  const auto features_of = [&](Llama llama) {
    KvCache cache = llama.make_cache(1, 400);
    const Segment segment{cache.open(), tokens, {}};
    Features asked{{0, 2, 4}, {5, 31, 59}};
    const at::Tensor states = llama.forward({&segment, 1}, cache, {}, &asked).clone();
    KvCache other = llama.make_cache(1, 400);
    const Segment again{other.open(), tokens, {}};
    EXPECT_TRUE(at::equal(llama.forward({&again, 1}, other), states)) << "nothing else changes";
    return asked.values.cpu();
  };
  const at::Tensor features = features_of(on_device(config)), expected = features_of(plain(config));
  ASSERT_EQ(features.sizes(), expected.sizes());
  EXPECT_TRUE(at::equal(features.select(1, 0), expected.select(1, 0)));
  EXPECT_LT((features - expected).abs().max().item<float>(), 0.12);
  EXPECT_LT((features - expected).abs().mean().item<float>(), 0.012);
}

TEST_P(CudaLlamaTest, ANodeHasTheBitsOfPlainDecoding) {
  const ModelConfig config = uneven_config(device_config());
  Llama llama = on_device(config);
  EXPECT_TRUE(llama.rows_are_independent());
  const Pass pass = some_pass(130, 20);
  const at::Tensor logits = run(llama, pass);
  for (const int32_t node : {0, 7, 13, 19}) {
    std::vector<TokenId> path;
    for (int32_t at = node; at >= 0; at = pass.parents[static_cast<size_t>(at)])
      path.insert(path.begin(), pass.tokens[static_cast<size_t>(at)]);
    KvCache cache = llama.make_cache(1, 400);
    const int32_t slot = cache.open();
    llama.prefill(slot, pass.prompt, cache);
    at::Tensor last;
    for (const TokenId& token : path) {  // one by one
      const Segment row{slot, {&token, 1}, {}};
      last = llama.logits(llama.forward({&row, 1}, cache)).cpu();
      cache.commit(slot, std::vector<int32_t>{0});
    }
    EXPECT_TRUE(at::equal(last[0], logits[node])) << node;
  }
}

/// Logits of passes that a host's loop asks for: two sequences, trees of changing shape.
std::vector<at::Tensor> logits_of_steps(Llama& llama, int64_t long_prompt_at) {
  KvCache cache = llama.make_cache(3, 600);
  const std::vector<int32_t> slots{cache.open(), cache.open()};
  std::vector<at::Tensor> out;
  for (const int32_t slot : slots) llama.prefill(slot, random_tokens(slot, 20 + 30 * slot), cache);
  for (int64_t step = 0; step < 9; ++step) {
    if (step == long_prompt_at) llama.prefill(cache.open(), random_tokens(9, 300), cache);
    std::vector<Pass> trees;
    std::vector<Segment> segments;
    for (size_t i = 0; i < slots.size(); ++i) trees.push_back(some_pass(0, step == 4 ? 5 : 9));
    for (size_t i = 0; i < slots.size(); ++i) {
      trees[i].tokens = random_tokens(100 * step + i, std::ssize(trees[i].tokens));
      if (step % 2 == 1) trees[i].parents.clear();  // a chain
      segments.push_back({slots[i], trees[i].tokens, trees[i].parents});
    }
    out.push_back(llama.logits(llama.forward(segments, cache)).cpu().clone());
    for (const int32_t slot : slots) cache.commit(slot, std::vector<int32_t>{0, 1});
  }
  return out;
}

TEST_P(CudaLlamaTest, ACapturedPassHasTheBitsOfOneThatIsStartedKernelByKernel) {
  const ModelConfig config = uneven_config(device_config());
  for (const int64_t long_prompt_at : {-1, 5}) {
    Llama captured = on_device(config), started = on_device(config);
    as_cuda(started.backend())->use_graphs(false);
    const auto steps = logits_of_steps(captured, long_prompt_at),
               expected = logits_of_steps(started, long_prompt_at);
    ASSERT_EQ(steps.size(), expected.size());
    for (size_t i = 0; i < steps.size(); ++i)
      EXPECT_TRUE(at::equal(steps[i], expected[i])) << "step " << i;
    EXPECT_TRUE(as_cuda(started.backend())->captured().empty());
    const auto kinds = as_cuda(captured.backend())->captured();
    ASSERT_EQ(kinds.size(), 1U);
    EXPECT_EQ(kinds[0].num_rows, 18);
    EXPECT_EQ(kinds[0].max_context, 256);
    EXPECT_EQ(std::ssize(kinds[0].layers), config.num_layers);
  }
}

/// The memory of a cache that is gone may be another one's.
TEST_P(CudaLlamaTest, ACapturedPassIsThatOfItsCacheAlone) {
  Llama captured = on_device(device_config()), started = on_device(device_config());
  as_cuda(started.backend())->use_graphs(false);
  const std::vector<TokenId> prompt = random_tokens(3, 20), chain = random_tokens(4, 3);
  const auto logits = [&](Llama& llama, int32_t num_slots, int64_t rows) {
    KvCache cache = llama.make_cache(num_slots, rows);
    int32_t slot = 0;
    for (int32_t i = 0; i < num_slots; ++i) slot = cache.open();  // the last one
    llama.prefill(slot, prompt, cache);
    const Segment segment{slot, chain, {}};
    at::Tensor last;
    for (int i = 0; i < 3; ++i)
      last = llama.logits(llama.forward({&segment, 1}, cache)).cpu().clone();
    return last;
  };
  // As many bytes in all three, behind the rows that a cache has beyond those asked for.
  const int64_t more = CudaLlama::kRowsBehind;
  for (const auto& [num_slots, rows] :
       {std::pair<int32_t, int64_t>{1, 1024 - more}, {2, 512 - more}, {1, 1024 - more}})
    EXPECT_TRUE(at::equal(logits(captured, num_slots, rows), logits(started, num_slots, rows)))
        << num_slots;
  std::set<int64_t> slots;
  for (const CapturedPass& each : as_cuda(captured.backend())->captured())
    slots.insert(each.cache.num_slots);
  EXPECT_EQ(slots, (std::set<int64_t>{1, 2}));
}

/// In blocks the reference rounds rows to 8 bits, as the CPU's kernels do, and the device does
/// not.
TEST_P(CudaLlamaTest, WeightsInBlocksAreMultipliedAsTheyAre) {
  const Weights weights = quantized(tiny_weights(1, device_config(), at::kBFloat16));
  Weights upcast = weights;
  upcast.kind = QuantKind::None;
  for (LayerWeights& layer : upcast.layers) {
    const auto elements = [](const QuantizedMatrix& blocks) {
      return dequantize_matrix(blocks).to(at::kBFloat16);
    };
    layer.qkv = elements(layer.blocks.qkv);
    layer.output = elements(layer.blocks.output);
    layer.gate_up = elements(layer.blocks.gate_up);
    layer.down = elements(layer.blocks.down);
    layer.blocks = {};
  }
  upcast.lm_head = dequantize_matrix(weights.lm_head_quantized).to(at::kBFloat16);
  upcast.lm_head_quantized = {};
  Llama llama = llama_on_kernels(to_device(weights, device())),
        reference(upcast, Kernels::Reference);
  EXPECT_STREQ(llama.dtype_name(), "stored");
  const Pass pass = some_pass(70, 9);
  const at::Tensor logits = run(llama, pass), expected = run(reference, pass);
  EXPECT_LT((logits - expected).abs().max().item<float>(), 0.15);
  EXPECT_LT((logits - expected).abs().mean().item<float>(), 0.015);
  const auto bytes = llama.weight_bytes();
  const int64_t qkv = weights.layers[0].blocks.qkv.quants.numel();
  EXPECT_EQ(bytes[static_cast<size_t>(ForwardStage::Qkv)], 2 * (qkv / 2 + qkv / 32 * 4));
}

TEST_P(CudaLlamaTest, BlocksThatNoGemmReadsAreTheUsersError) {
  Weights weights = quantized(tiny_weights(1, device_config(), at::kBFloat16));
  weights.layers[1].blocks.down =
      in_format(at::ones({weights.config.hidden_size, weights.config.mlp_size}), {8, 16, false});
  EXPECT_EQ(fixtures::error_text([&] { llama_on_kernels(to_device(weights, device())); }),
            "backbone.dtype: a matrix of the model is stored in blocks that have no product on a "
            "GPU, expected blocks of 32 with one scale; use --dtype bfloat16 or int8");
}

TEST_P(CudaLlamaTest, LayersAloneAgreeWithTheReference) {
  const ModelConfig config = device_config();
  Llama device = on_device(config), reference = plain(config);
  const std::vector<TokenId> tokens = random_tokens(6, 9);
  const at::Tensor x =
      at::randn({9, config.hidden_size}, at::make_generator<at::CPUGeneratorImpl>(7))
          .to(OnEveryDevice::device());
  const auto layers = [&](Llama& llama) {
    KvCache cache = llama.make_cache(1, 64);
    const Segment chain{cache.open(), tokens, {}};
    return llama.run_layers({&chain, 1}, x, cache).cpu();
  };
  EXPECT_LT((layers(device) - layers(reference)).abs().max().item<float>(), 0.1);
}

TEST_P(CudaLlamaTest, SomeLayersAlone) {
  const ModelConfig config = device_config();
  Llama device = on_device(config), reference = plain(config);
  const std::vector<TokenId> tokens = random_tokens(6, 5);
  const std::vector<int32_t> second{1};
  const auto states = [&](Llama& llama) {
    KvCache cache = llama.make_cache(1, 64);
    const Segment chain{cache.open(), tokens, {}};
    return llama.forward({&chain, 1}, cache, second).to(at::kFloat).cpu();
  };
  EXPECT_LT((states(device) - states(reference)).abs().max().item<float>(), 0.1);
}

TEST_P(CudaLlamaTest, IsNotOfferedForWhatItIsNotWrittenFor) {
  const auto supports = [](ModelConfig config, at::ScalarType dtype = at::kBFloat16) {
    return CudaLlama::supports(tiny_weights(1, config, dtype), kernels());
  };
  EXPECT_TRUE(supports(device_config()));
  EXPECT_FALSE(supports(device_config(), at::kFloat));
  ModelConfig config = device_config();
  config.mlp_size = 100;
  EXPECT_FALSE(supports(config));
  config = device_config();
  config.head_size = 48;
  EXPECT_FALSE(supports(config));
  EXPECT_FALSE(CudaLlama::supports(tiny_weights(1, device_config(), at::kBFloat16), {}));
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaLlamaTest, every_device(), device_name);

}  // namespace
}  // namespace medusa
