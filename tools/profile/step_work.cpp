#include "tools/profile/step_work.h"

namespace medusa {

std::array<StageWork, kNumForwardStages> pass_work(
    const ModelConfig& config, const std::array<int64_t, kNumForwardStages>& weight_bytes,
    double element_bytes, int64_t rows, int64_t context) {
  std::array<StageWork, kNumForwardStages> work;
  const auto at = [&](ForwardStage stage) -> StageWork& {
    return work[static_cast<size_t>(stage)];
  };
  for (size_t i = 0; i < work.size(); ++i) work[i].bytes = static_cast<double>(weight_bytes[i]);
  const auto n = static_cast<double>(rows), before = static_cast<double>(context);
  const auto layers = static_cast<double>(config.num_layers);
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto mlp = static_cast<double>(config.mlp_size);
  const auto vocab = static_cast<double>(config.vocab_size);
  const auto query = static_cast<double>(config.num_heads * config.head_size);
  const auto key_value = static_cast<double>(2 * config.num_kv_heads * config.head_size);

  at(ForwardStage::Embedding).bytes += n * hidden * element_bytes;
  at(ForwardStage::CacheWrite).bytes += layers * n * key_value * element_bytes;
  at(ForwardStage::Attention).bytes += layers * (before + n) * key_value * element_bytes;
  at(ForwardStage::LmHead).bytes += n * vocab * sizeof(float);

  at(ForwardStage::Qkv).flops = layers * 2 * n * hidden * (query + key_value);
  // Row i of a chain sees the context and i + 1 rows of the chain; scores and P · V, two GEMMs.
  const double seen = n * before + n * (n + 1) / 2;
  at(ForwardStage::Attention).flops = layers * 2 * 2 * seen * query;
  at(ForwardStage::Output).flops = layers * 2 * n * query * hidden;
  at(ForwardStage::GateUp).flops = layers * 2 * n * hidden * 2 * mlp;
  at(ForwardStage::Down).flops = layers * 2 * n * mlp * hidden;
  at(ForwardStage::LmHead).flops = 2 * n * vocab * hidden;
  return work;
}

}  // namespace medusa
