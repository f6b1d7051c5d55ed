#include "heads/prefix_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/rope.h"
#include "tests/base/error_text.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

const HeadsConfig kPrefix = heads_config(HeadInput::Prefix, HeadOutput::Shared);

at::Tensor rms(const at::Tensor& x, const at::Tensor& weight) {
  return x / at::sqrt(x.square().mean(-1, true) + 1e-5) * weight;
}

/// A transformer layer, position by position, in float32.
at::Tensor layer_by_hand(const LayerWeights& layer, const ModelConfig& config,
                         const at::Tensor& x) {
  const RopeTable rope = make_rope_table(config, at::kCPU);
  const int64_t n = x.size(0);
  const at::Tensor qkv = at::matmul(rms(x, layer.attention_norm), layer.qkv.t());  // [n, 4 + 2 + 2]
  const at::Tensor positions = at::arange(n, at::kLong);
  const at::Tensor q = apply_rope(qkv.slice(1, 0, 128).reshape({n, 4, 32}), positions, rope);
  const at::Tensor k = apply_rope(qkv.slice(1, 128, 192).reshape({n, 2, 32}), positions, rope);
  const at::Tensor v = qkv.slice(1, 192).reshape({n, 2, 32});
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<at::Tensor> attention_out;
    for (int64_t head = 0; head < 4; ++head) {
      const at::Tensor keys = k.slice(0, 0, i + 1).select(1, head / 2);
      const at::Tensor weights = at::softmax(at::mv(keys, q[i][head]) / std::sqrt(32.0), 0);
      attention_out.push_back(at::mv(v.slice(0, 0, i + 1).select(1, head / 2).t(), weights));
    }
    const at::Tensor y = x[i] + at::mv(layer.output, at::cat(attention_out));
    const at::Tensor inner = at::mv(layer.gate_up, rms(y, layer.mlp_norm));
    const at::Tensor gate = inner.slice(0, 0, 96), up = inner.slice(0, 96);
    rows.push_back(y + at::mv(layer.down, gate * at::sigmoid(gate) * up));
  }
  return at::stack(rows);
}

/// The layer as prefix_layer.h writes it.
at::Tensor by_hand(const MedusaHeads& heads, const Weights& backbone, const at::Tensor& hidden,
                   const std::vector<TokenId>& roots) {
  const PrefixLayer& prefix = *heads.prefix;
  const at::Tensor embedded = token_embeddings(backbone, embedding_gain(backbone),
                                               at::tensor(roots, at::kInt).view({-1, 1}))
                                  .squeeze(1);
  const at::Tensor x = hidden + at::matmul(embedded, prefix.token.t());
  return layer_by_hand(prefix.layer, prefix.config, x);
}

struct Along {
  Weights backbone;
  MedusaHeads heads;
  PrefixModel model;

  explicit Along(at::ScalarType dtype, Kernels kernels = Kernels::Auto,
                 QuantKind kind = QuantKind::None)
      : backbone(weights(dtype, kind)),
        heads(random_heads(kPrefix, backbone)),
        model(*heads.prefix, backbone, kernels) {}

  static Weights weights(at::ScalarType dtype, QuantKind kind) {
    Weights out = tiny_weights(1, tiny_config(), dtype);
    out.kind = kind;
    return out;
  }

  at::Tensor at_once(const at::Tensor& hidden, std::span<const TokenId> roots) {
    return PrefixText(model).extend(hidden, roots);
  }
};

TEST(PrefixModel, AnUntrainedLayerChangesNothing) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Auto, Kernels::Reference}) {
      const Weights backbone = tiny_weights(1, tiny_config(), dtype);
      const MedusaHeads heads = untrained_heads(kPrefix, backbone);
      PrefixModel model(*heads.prefix, backbone, kernels);
      const at::Tensor hidden = random_hidden(40, dtype);
      EXPECT_TRUE(at::equal(PrefixText(model).extend(hidden, some_text(40)), hidden));
    }
}

TEST(PrefixModel, IsTheLayerAsWritten) {
  Along along(at::kFloat);
  const at::Tensor hidden = random_hidden(30, at::kFloat);
  const auto roots = some_text(30);
  const at::Tensor expected = by_hand(along.heads, along.backbone, hidden, roots);
  EXPECT_GT((expected - hidden).abs().max().item<double>(), 0.5);
  EXPECT_TRUE(at::allclose(along.at_once(hidden, roots), expected, 1e-4, 1e-4));
}

TEST(PrefixModel, BegunAsTheLastLayerItIsThatLayerOverTheStates) {
  Weights backbone = tiny_weights(1);
  backbone.final_norm.fill_(1.75);
  MedusaHeads heads = untrained_heads(kPrefix, backbone);
  const LayerWeights& last = backbone.layers.back();
  begin_as_last_layer(*heads.prefix, backbone.config, last, backbone.final_norm);
  // What the layer adds is known up to one factor; the residual stream of that size gives it.
  const double factor = heads.prefix->scale[0].item<double>() / 1.75;
  ASSERT_GT(factor, 0);
  for (const auto tensor :
       {&LayerWeights::qkv, &LayerWeights::output, &LayerWeights::gate_up, &LayerWeights::down})
    EXPECT_TRUE(at::equal(heads.prefix->layer.*tensor, last.*tensor));
  const at::Tensor direction = random_hidden(30, at::kFloat);
  const at::Tensor stream = rms(direction, at::ones({64})) / factor;
  const at::Tensor expected =
      rms(layer_by_hand(last, backbone.config, stream), backbone.final_norm);
  PrefixModel model(*heads.prefix, backbone);
  const at::Tensor states = rms(stream, backbone.final_norm);
  const at::Tensor found = PrefixText(model).extend(states, some_text(30));
  EXPECT_TRUE(at::allclose(found, expected, 1e-3, 1e-3)) << (found - expected).abs().max();
  EXPECT_GT((found - states).square().mean().sqrt().item<double>(), 0.2) << "of 1.75";
}

TEST(PrefixModel, ALastLayerThatItCannotHoldIsRefused) {
  Weights backbone = tiny_weights(1);
  PrefixLayer layer = make_prefix_layer(backbone.config, Random(1), at::kCPU);
  const auto refused = [&](const ModelConfig& config) {
    return fixtures::error_text(
        [&] { begin_as_last_layer(layer, config, backbone.layers.back(), backbone.final_norm); });
  };
  ModelConfig config = backbone.config;
  config.qk_norm = true;
  EXPECT_EQ(refused(config),
            "train.heads.start is last_layer, and the backbone's last layer has norms of queries "
            "and keys, expected one without, as a prefix layer has none; set start to random");
  config = backbone.config;
  config.no_rope.assign(static_cast<size_t>(config.num_layers), false);
  EXPECT_EQ(refused(config), "(no error)");
  config.no_rope.back() = true;
  EXPECT_NE(refused(config).find("no rotary embedding"), std::string::npos);
}

TEST(PrefixModel, TheFastPathIsTheReferenceWithinRounding) {
  const at::Tensor hidden = random_hidden(60, at::kBFloat16);
  const auto roots = some_text(60);
  for (const QuantKind kind : {QuantKind::None, QuantKind::Int8}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const at::Tensor fast =
        Along(at::kBFloat16, Kernels::Auto, kind).at_once(hidden, roots).to(at::kFloat);
    const at::Tensor plain =
        Along(at::kBFloat16, Kernels::Reference, kind).at_once(hidden, roots).to(at::kFloat);
    const at::Tensor exact = Along(at::kFloat).at_once(hidden.to(at::kFloat), roots);
    const double size = exact.square().mean().sqrt().item<double>();
    const auto distance = [&](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).square().mean().sqrt().item<double>() / size;
    };
    EXPECT_LT(distance(fast, plain), 0.01);
    EXPECT_LT(distance(fast, exact), 0.02);
  }
}

TEST(PrefixModel, RunsOnTheIsaThatWasAskedFor) {
  for (const CpuIsa isa : {CpuIsa::Portable, CpuIsa::Avx2, CpuIsa::Avx512})
    for (const QuantKind kind : {QuantKind::None, QuantKind::Int8}) {
      const CpuKernels* expected = kernels_for(isa, kind != QuantKind::None);
      if (expected == nullptr) continue;  // not on this machine
      const Weights backbone = Along::weights(at::kBFloat16, kind);
      const MedusaHeads heads = random_heads(kPrefix, backbone);
      EXPECT_STREQ(PrefixModel(*heads.prefix, backbone, ExecutionContext({.isa = isa})).kernels(),
                   expected->name);
    }
}

TEST(PrefixModel, StepByStepIsTheSameAsAtOnce) {
  // More than one pass and one growth of the cache.
  const int64_t length = 300;
  const auto roots = some_text(length);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Auto, Kernels::Reference}) {
      Along along(dtype, kernels);
      const at::Tensor hidden = random_hidden(length, dtype);
      const at::Tensor whole = along.at_once(hidden, roots);
      ASSERT_EQ(whole.sizes(), hidden.sizes());
      PrefixText text(along.model);
      std::vector<at::Tensor> parts;
      for (int64_t begin = 0, i = 0; begin < length; ++i) {
        const int64_t n = std::min(1 + i * i % 7, length - begin);
        const auto part =
            std::span(roots).subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
        const at::Tensor looked_at =
            text.peek(hidden.narrow(0, begin, n), part);  // leaves no trace
        parts.push_back(text.extend(hidden.narrow(0, begin, n), part));
        EXPECT_TRUE(at::equal(parts.back(), looked_at));
        begin += n;
        ASSERT_EQ(text.length(), begin);
      }
      const at::Tensor steps = at::cat(parts);
      if (dtype == at::kBFloat16 && kernels == Kernels::Auto && Llama(along.backbone).uses_pool())
        EXPECT_TRUE(at::equal(steps, whole));
      else
        EXPECT_TRUE(at::allclose(steps, whole, dtype == at::kFloat ? 1e-4 : 0.05,
                                 dtype == at::kFloat ? 1e-4 : 0.05));
    }
}

TEST(PrefixModel, APositionSeesThoseBeforeItAndNoOther) {
  Along along(at::kFloat);
  const at::Tensor hidden = random_hidden(20, at::kFloat);
  const auto roots = some_text(20);
  const at::Tensor before = along.at_once(hidden, roots);
  at::Tensor changed = hidden.clone();
  changed[9] += 1;
  const at::Tensor after = along.at_once(changed, roots);
  EXPECT_TRUE(at::equal(after.slice(0, 0, 9), before.slice(0, 0, 9)));
  for (int64_t i = 9; i < 20; ++i) EXPECT_FALSE(at::equal(after[i], before[i])) << i;
  auto other_roots = roots;
  other_roots[9] = (roots[9] + 1) % 130;
  const at::Tensor other = along.at_once(hidden, other_roots);
  EXPECT_TRUE(at::equal(other.slice(0, 0, 9), before.slice(0, 0, 9)));
  for (int64_t i = 9; i < 20; ++i) EXPECT_FALSE(at::equal(other[i], before[i])) << i;
}

TEST(PrefixModel, TextsBesideEachOtherDoNotMix) {
  Along along(at::kFloat);
  const at::Tensor hidden = random_hidden(20, at::kFloat);
  const auto roots = some_text(20);
  PrefixText one(along.model), two(along.model);
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < 20; ++i) {
    const auto root = std::span(roots).subspan(static_cast<size_t>(i), 1);
    parts.push_back(one.extend(hidden.narrow(0, i, 1), root));
    two.extend(-hidden.narrow(0, i, 1), root);
  }
  EXPECT_TRUE(at::allclose(at::cat(parts), along.at_once(hidden, roots), 1e-4, 1e-4));
}

}  // namespace
}  // namespace medusa
