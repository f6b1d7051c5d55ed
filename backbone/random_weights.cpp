#include "backbone/random_weights.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/random.h"

namespace medusa {
namespace {

constexpr int64_t kRandomChunk = 1 << 22;  // numbers made at a time, 32 MB of bits

/// Draws tensors one after the other; each has an address of its own, and each of its numbers a
/// place there, so that neither chunks nor devices matter.
class WeightDraw {
 public:
  WeightDraw(at::ScalarType dtype, at::Device device, uint64_t seed)
      : dtype_(dtype), device_(device), random_(seed) {}

  /// [rows, columns]: products keep the size of what they are given.
  at::Tensor matrix(int64_t rows, int64_t columns) {
    return uniform({rows, columns}, dtype_, 0, std::sqrt(3.0 / static_cast<double>(columns)));
  }
  at::Tensor norm(int64_t size) { return uniform({size}, at::kFloat, 1, 0.2); }
  at::Tensor bias(int64_t size) { return uniform({size}, at::kFloat, 0, 0.5); }

 private:
  /// Between middle - width and middle + width.
  at::Tensor uniform(at::IntArrayRef shape, at::ScalarType dtype, double middle, double width) {
    const auto address = std::bit_cast<int64_t>(random_.bits(RandomUse::Init, tensors_++));
    at::Tensor out = at::empty(shape, at::TensorOptions(device_).dtype(dtype));
    const at::Tensor flat = out.view(-1);
    for (int64_t begin = 0; begin < flat.numel(); begin += kRandomChunk) {
      const int64_t end = std::min(begin + kRandomChunk, flat.numel());
      const at::Tensor noise = bits(address, begin, end).to(at::kFloat).mul_(width / 8388608.0);
      flat.slice(0, begin, end).copy_(noise.add_(middle - width));  // [0, 2^24) -> [-width, width)
    }
    return out;
  }

  /// 24 random bits for each place of a tensor: splitmix64's finaliser of address + place. LibTorch
  /// has signed numbers only, whose products wrap around and whose shifts bring the sign along.
  at::Tensor bits(int64_t address, int64_t begin, int64_t end) const {
    const auto shifted = [](const at::Tensor& x, int64_t by) {
      return x.bitwise_right_shift(by).bitwise_and_((int64_t{1} << (64 - by)) - 1);
    };
    at::Tensor x = at::arange(begin, end, at::TensorOptions(device_).dtype(at::kLong));
    x.add_(address);
    x.bitwise_xor_(shifted(x, 30)).mul_(std::bit_cast<int64_t>(0xBF58476D1CE4E5B9ULL));
    x.bitwise_xor_(shifted(x, 27)).mul_(std::bit_cast<int64_t>(0x94D049BB133111EBULL));
    return shifted(x, 40);
  }

  at::ScalarType dtype_;
  at::Device device_;
  Random random_;
  int64_t tensors_ = 0;
};

LayerWeights random_layer(const ModelConfig& config, WeightDraw& draw) {
  const int64_t hidden = config.hidden_size, query = config.num_heads * config.head_size,
                kv = config.num_kv_heads * config.head_size;
  LayerWeights layer;
  layer.attention_norm = draw.norm(hidden);
  layer.qkv = draw.matrix(query + 2 * kv, hidden);
  if (config.qkv_bias) layer.qkv_bias = draw.bias(query + 2 * kv);
  if (config.qk_norm) {
    layer.query_norm = draw.norm(config.head_size);
    layer.key_norm = draw.norm(config.head_size);
  }
  layer.output = draw.matrix(hidden, query);
  layer.mlp_norm = draw.norm(hidden);
  layer.gate_up = draw.matrix(2 * config.mlp_size, hidden);
  layer.down = draw.matrix(hidden, config.mlp_size);
  return layer;
}

}  // namespace

Weights random_weights(const ModelConfig& config, at::ScalarType dtype, at::Device device,
                       uint64_t seed) {
  const c10::InferenceMode no_grad;
  WeightDraw draw(dtype, device, seed);
  Weights weights;
  weights.config = config;
  weights.fingerprint = fmt::format("random:{}", seed);
  weights.embedding = draw.matrix(config.vocab_size, config.hidden_size);
  for (int64_t i = 0; i < config.num_layers; ++i)
    weights.layers.push_back(random_layer(config, draw));
  weights.final_norm = draw.norm(config.hidden_size);
  weights.lm_head =
      config.tied_output ? weights.embedding : draw.matrix(config.vocab_size, config.hidden_size);
  return weights;
}

}  // namespace medusa
