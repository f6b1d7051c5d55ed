#include "tools/profile/step_work.h"

namespace medusa {

std::array<PartWork, kNumPassParts> pass_work(
    const ModelConfig& config, const std::array<int64_t, kNumPassParts>& weight_bytes,
    double number_bytes, int64_t rows, int64_t context) {
  std::array<PartWork, kNumPassParts> work;
  const auto at = [&](PassPart part) -> PartWork& { return work[static_cast<size_t>(part)]; };
  for (size_t i = 0; i < work.size(); ++i) work[i].bytes = static_cast<double>(weight_bytes[i]);
  const auto n = static_cast<double>(rows), before = static_cast<double>(context);
  const auto layers = static_cast<double>(config.num_layers);
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto mlp = static_cast<double>(config.mlp_size);
  const auto vocab = static_cast<double>(config.vocab_size);
  const auto query = static_cast<double>(config.num_heads * config.head_size);
  const auto key_value = static_cast<double>(2 * config.num_kv_heads * config.head_size);

  at(PassPart::Embedding).bytes += n * hidden * number_bytes;
  at(PassPart::CacheWrite).bytes += layers * n * key_value * number_bytes;
  at(PassPart::Attention).bytes += layers * (before + n) * key_value * number_bytes;
  at(PassPart::LmHead).bytes += n * vocab * sizeof(float);

  at(PassPart::Qkv).flops = layers * 2 * n * hidden * (query + key_value);
  // Row i of a chain sees the context and i + 1 rows of the chain; scores and mix, two products.
  const double seen = n * before + n * (n + 1) / 2;
  at(PassPart::Attention).flops = layers * 2 * 2 * seen * query;
  at(PassPart::Output).flops = layers * 2 * n * query * hidden;
  at(PassPart::GateUp).flops = layers * 2 * n * hidden * 2 * mlp;
  at(PassPart::Down).flops = layers * 2 * n * mlp * hidden;
  at(PassPart::LmHead).flops = 2 * n * vocab * hidden;
  return work;
}

}  // namespace medusa
