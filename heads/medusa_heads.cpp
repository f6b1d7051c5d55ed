#include "heads/medusa_heads.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "heads/head_init.h"

namespace medusa {
namespace {

HeadBlock make_block(const HeadsConfig& config, int64_t hidden_size, int64_t block,
                     const Random& random, at::Device device) {
  const auto zeros = [&](at::IntArrayRef shape) { return at::zeros(shape, at::kFloat).to(device); };
  const int64_t num_read = tokens_read(config.input, block / config.layers_per_head);
  if (num_read == 0) return {zeros({hidden_size, hidden_size}), zeros({hidden_size}), {}};
  return {small_random(hidden_size, (1 + num_read) * hidden_size, random, block).to(device),
          zeros({hidden_size}), zeros({hidden_size, hidden_size})};
}

}  // namespace

MedusaHeads make_heads(const HeadsConfig& config, const Weights& backbone,
                       std::vector<TokenId> kept_tokens, uint64_t seed) {
  MEDUSA_ASSERT(is_truncated(config.output) != kept_tokens.empty(), kept_tokens.size());
  std::sort(kept_tokens.begin(), kept_tokens.end());  // then equal logits go to the lower id
  const at::Device device = backbone.lm_head.device();
  MedusaHeads heads{config,
                    backbone.config.hidden_size,
                    backbone.config.vocab_size,
                    std::move(kept_tokens),
                    {},
                    {},
                    {},
                    {},
                    {}};
  const int64_t num_blocks = config.num_heads * config.layers_per_head;
  for (int64_t block = 0; block < num_blocks; ++block)
    heads.blocks.push_back(make_block(config, heads.hidden_size, block, Random(seed), device));
  if (has_prefix(config.input))
    heads.prefix = make_prefix_layer(backbone.config, Random(seed), device);
  if (config.correction_rank > 0)
    heads.correction =
        make_correction(backbone, heads.kept_tokens, config.num_heads, config.correction_rank);
  if (!is_own(config.output)) return heads;
  const at::Tensor rows = shared_output(heads, backbone);
  OutputFactors factors{{}, rows};
  if (is_low_rank(config.output)) factors = factorize_output(rows, config.output_rank);
  for (int64_t head = 0; head < config.num_heads; ++head) {  // a copy each, never a shared one
    heads.outputs.push_back(factors.out.to(at::kFloat, false, /*copy=*/true));
    if (is_low_rank(config.output)) heads.downs.push_back(factors.down.clone());
  }
  return heads;
}

std::vector<int32_t> rows_of_tokens(const MedusaHeads& heads) {
  std::vector<int32_t> rows(static_cast<size_t>(heads.vocab_size), -1);
  for (int64_t row = 0; row < heads.output_rows(); ++row)
    rows[static_cast<size_t>(heads.token_of_row(row))] = static_cast<int32_t>(row);
  return rows;
}

std::vector<std::pair<std::string, at::Tensor>> named_parameters(const MedusaHeads& heads) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (int64_t head = 0; head < heads.config.num_heads; ++head) {
    for (int64_t layer = 0; layer < heads.config.layers_per_head; ++layer) {
      const HeadBlock& block =
          heads.blocks[static_cast<size_t>(head * heads.config.layers_per_head + layer)];
      const std::string prefix = fmt::format("{}.layers.{}.", head, layer);
      named.emplace_back(prefix + "weight", block.weight);
      named.emplace_back(prefix + "bias", block.bias);
      if (block.second.defined()) named.emplace_back(prefix + "second", block.second);
    }
    if (!heads.outputs.empty())
      named.emplace_back(fmt::format("{}.output", head), heads.outputs[static_cast<size_t>(head)]);
    if (!heads.downs.empty())
      named.emplace_back(fmt::format("{}.output_down", head),
                         heads.downs[static_cast<size_t>(head)]);
    if (is_corrected(heads, head))
      named.emplace_back(fmt::format("{}.correction", head), heads.correction->factor_of(head));
  }
  if (heads.correction) named.emplace_back("correction.table", heads.correction->table);
  if (heads.prefix)
    for (const auto& [name, tensor] : named_parameters(*heads.prefix))
      named.emplace_back("prefix." + name, tensor);
  return named;
}

int64_t num_parameters(const MedusaHeads& heads) {
  int64_t count = 0;
  for (const auto& [name, tensor] : named_parameters(heads)) count += tensor.numel();
  return count;
}

at::Tensor shared_output(const MedusaHeads& heads, const Weights& backbone) {
  if (heads.kept_tokens.empty()) return backbone.lm_head;
  const at::Tensor rows = at::tensor(heads.kept_tokens, at::kInt).to(backbone.lm_head.device());
  return backbone.lm_head.index_select(0, rows);  // [V_t, H]
}

at::Tensor whole_output(const MedusaHeads& heads, int64_t head) {
  const at::Tensor& output = heads.outputs[static_cast<size_t>(head)];
  return heads.downs.empty() ? output : at::mm(output, heads.downs[static_cast<size_t>(head)]);
}

double embedding_gain(const Weights& backbone) {
  constexpr int64_t kRows = 4096;  // enough to know their size
  const auto root_mean_square = [](const at::Tensor& x) {
    return x.to(at::kDouble).square().mean().sqrt().item<double>();
  };
  const int64_t rows = std::min(kRows, backbone.embedding.size(0));
  // A normalized state has the size of the norm's weight.
  const double ratio = root_mean_square(backbone.final_norm) /
                       root_mean_square(backbone.embedding.narrow(0, 0, rows));
  return std::isfinite(ratio) && ratio > 0 ? std::exp2(std::round(std::log2(ratio))) : 1;
}

at::Tensor token_embeddings(const Weights& backbone, double gain, const at::Tensor& tokens) {
  const at::Tensor rows = backbone.embedding.index_select(0, tokens.flatten()) * gain;
  return rows.view({tokens.size(0), tokens.size(1), rows.size(1)});
}

at::Tensor head_state(const MedusaHeads& heads, int64_t head, const at::Tensor& hidden,
                      const at::Tensor& embeddings) {
  const at::ScalarType dtype = hidden.scalar_type();
  const int64_t num_read = tokens_read(heads.config.input, head);
  at::Tensor read;  // [n, E H]
  if (num_read > 0) read = embeddings.narrow(1, 0, num_read).flatten(1);
  at::Tensor y = hidden;  // [n, H]
  for (int64_t layer = 0; layer < heads.config.layers_per_head; ++layer) {
    const HeadBlock& block =
        heads.blocks[static_cast<size_t>(head * heads.config.layers_per_head + layer)];
    const at::Tensor weight = block.weight.to(dtype), bias = block.bias.to(dtype);
    if (num_read == 0) {
      y = y + at::silu(at::linear(y, weight, bias));
    } else {
      const at::Tensor all = at::cat({y, read}, 1);  // [n, (1 + E) H]
      y = y + at::linear(at::silu(at::linear(all, weight, bias)), block.second.to(dtype));
    }
  }
  if (heads.downs.empty()) return y;
  return at::linear(y, heads.downs[static_cast<size_t>(head)].to(dtype));  // [n, r]
}

}  // namespace medusa
