// Heads whose every parameter is random, over a tiny backbone.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <vector>

#include "base/yaml_fields.h"
#include "heads/medusa_heads.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {

/// Kept tokens of a truncated output of n rows, in no order: 5, 12, 19, … modulo 130 backwards.
inline std::vector<TokenId> some_tokens(int64_t n) {
  std::vector<TokenId> tokens;
  for (int64_t i = n; i > 0; --i) tokens.push_back(static_cast<TokenId>((5 + 7 * i) % 130));
  return tokens;
}

inline HeadsConfig heads_config(HeadInput input, HeadOutput output, int64_t layers = 1,
                                int64_t num_heads = 3) {
  return {num_heads, layers, input, output, 50, 32};
}

inline MedusaHeads untrained_heads(const HeadsConfig& config, const Weights& backbone) {
  return make_heads(
      config, backbone,
      is_truncated(config.output) ? some_tokens(config.output_size) : std::vector<TokenId>(),
      /*seed=*/3);
}

inline MedusaHeads random_heads(const HeadsConfig& config, const Weights& backbone,
                                uint64_t seed = 17) {
  MedusaHeads heads = untrained_heads(config, backbone);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& [name, tensor] : named_parameters(heads))
    at::Tensor(tensor).copy_(0.15 * at::randn(tensor.sizes(), generator, at::kFloat));
  return heads;
}

inline at::Tensor random_hidden(int64_t rows, at::ScalarType dtype, uint64_t seed = 23) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({rows, tiny_config().hidden_size}, generator, at::kFloat).to(dtype);
}

inline std::vector<TokenId> some_text(int64_t n) {
  std::vector<TokenId> text;
  for (int64_t i = 0; i < n; ++i) text.push_back(static_cast<TokenId>((31 * i + 4) % 130));
  return text;
}

/// Every kind of heads.
inline std::vector<HeadsConfig> all_configs() {
  std::vector<HeadsConfig> configs;
  for (const auto& [input_name, input] : EnumNames<HeadInput>::values)
    for (const auto& [output_name, output] : EnumNames<HeadOutput>::values)
      for (const int64_t layers : {1, 2}) configs.push_back(heads_config(input, output, layers));
  for (const HeadInput input : {HeadInput::Hidden, HeadInput::Root, HeadInput::Prefix})
    for (const HeadOutput output :
         {HeadOutput::Shared, HeadOutput::TruncatedShared, HeadOutput::TruncatedLowRank}) {
      configs.push_back(heads_config(input, output));
      configs.back().correction_rank = 32;
    }
  return configs;
}

inline std::string describe(const HeadsConfig& config) { return write_config(config); }

}  // namespace medusa
