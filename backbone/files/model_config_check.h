// What both readers of a model's settings ask of them. Only hf_config.cpp, hf_sizes.cpp and
// gguf_config.cpp; heads/eagle3 takes the limits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backbone/architecture.h"
#include "backbone/model_config.h"

namespace medusa {

inline constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kMaxHeadSize = 4096;
inline constexpr int64_t kMaxLayers = 65536;  // some settings are kept for each
inline constexpr double kMaxFloat = std::numeric_limits<float>::max();  // tables are float32
inline constexpr int64_t kMaxContext = int64_t{1} << 24;
inline constexpr int64_t kMaxRotated = int64_t{1} << 29;  // numbers of the rotary table: 2 GiB

/// What no model can have, whichever file said it.
/// @param fail  called with what was found and what was expected; does not return.
template <typename Fail>
void check_values(const ModelConfig& config, const Fail& fail) {
  if (config.num_layers < 1 || config.num_layers > kMaxLayers)
    fail(
        fmt::format("the number of layers is {}, expected 1 to {}", config.num_layers, kMaxLayers));
  const std::pair<const char*, int64_t> sizes[] = {
      {"hidden size", config.hidden_size},
      {"number of attention heads", config.num_heads},
      {"number of key/value heads", config.num_kv_heads},
      {"head size", config.head_size},
      {"feed-forward size", config.mlp_size},
      {"vocabulary size", config.vocab_size},
      {"context length", config.context}};
  for (const auto& [name, value] : sizes)
    if (value < 1 || value > kMaxSize)
      fail(fmt::format("the {} is {}, expected 1 to {}", name, value, kMaxSize));
  if (config.num_heads % config.num_kv_heads != 0)
    fail(
        fmt::format("{} attention heads do not share {} key/value heads evenly, expected a "
                    "multiple",
                    config.num_heads, config.num_kv_heads));
  if (config.head_size % 2 != 0 || config.head_size > kMaxHeadSize)
    fail(
        fmt::format("the head size is {}, expected an even number up to {}: the rotary embedding "
                    "turns pairs",
                    config.head_size, kMaxHeadSize));
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1))
    fail(fmt::format("the norm's epsilon is {}, expected a small positive number",
                     config.norm_epsilon));
  if (!(config.rope_base > 1 && config.rope_base <= kMaxFloat))
    fail(fmt::format("the rotary base is {}, expected a float32 above 1", config.rope_base));
  for (const TokenId id : config.eos)
    if (id < 0 || id >= config.vocab_size)
      fail(fmt::format("the end token is {}, expected an id below the vocabulary size {}", id,
                       config.vocab_size));
}

/// H / A, for files that do not say the head size. An unusable A is left to check_values.
template <typename Fail>
int64_t even_share(const ModelConfig& config, const Fail& fail) {
  if (config.num_heads < 1) return 1;
  if (config.hidden_size % config.num_heads != 0)
    fail(
        fmt::format("the hidden size {} is not a multiple of the {} attention heads, and no head "
                    "size is given",
                    config.hidden_size, config.num_heads));
  return config.hidden_size / config.num_heads;
}

/// With partial RoPE. What is not rotated are pairs, too, since the head's size is even.
template <typename Fail>
void check_rotary_dim(const ModelConfig& config, const Fail& fail) {
  if (config.rotary_dim < 2 || config.rotary_dim > config.head_size || config.rotary_dim % 2 != 0)
    fail(fmt::format("{} of a head's {} dimensions turn, expected an even number of them",
                     config.rotary_dim, config.head_size));
}

/// What stretches the rotary embedding, which is read last: its numbers are the head size's. So
/// is the context, which it stretches, too.
template <typename Fail>
void check_rope(const ModelConfig& config, const Fail& fail) {
  for (const double factor : config.rope_factors)
    if (!(factor > 0 && factor <= kMaxFloat))
      fail(fmt::format("a factor of the rotary embedding is {}, expected a positive number",
                       factor));
  if (!(config.rope_attention > 0 && config.rope_attention <= kMaxFloat))
    fail(fmt::format("the rotary embedding's attention factor is {}, expected a positive number",
                     config.rope_attention));
  // The rotary table has a row for every position, so a header of some bytes could ask for any
  // amount of memory.
  const int64_t longest = std::min(kMaxContext, kMaxRotated / config.head_size);
  if (config.context > longest)
    fail(fmt::format("the context length is {}, expected 1 to {}", config.context, longest));
}

/// How far a text may reach: models are also published with the first context as theirs.
inline int64_t stretched_context(int64_t context, double stretched) {
  // check_rope() tells of what is no number or negative.
  if (!(stretched >= 0 && stretched <= static_cast<double>(kMaxSize))) return context;
  return std::max(context, static_cast<int64_t>(stretched));
}

/// Every interval-th layer does not rotate its queries and keys.
inline std::vector<bool> no_rope_layers(int64_t num_layers, int64_t interval) {
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < num_layers; ++layer)
    layers.push_back((layer + 1) % interval == 0);
  return layers;
}

}  // namespace medusa
