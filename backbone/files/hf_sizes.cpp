#include "backbone/files/hf_sizes.h"

#include "backbone/files/hf_rope.h"
#include "backbone/files/model_config_check.h"

namespace medusa {

void read_hf_sizes(const JsonSettings& file, const Architecture& architecture,
                   ModelConfig& config) {
  const auto fail = [&file](const std::string& text) { file.fail(text); };
  config.hidden_size = file.integer("hidden_size");
  config.num_heads = file.integer("num_attention_heads");
  config.num_kv_heads = file.integer("num_key_value_heads", config.num_heads);
  config.head_size = file.find("head_dim") ? file.integer("head_dim") : even_share(config, fail);
  config.mlp_size = file.integer("intermediate_size");
  config.vocab_size = file.integer("vocab_size");
  config.norm_epsilon = file.number("rms_norm_eps");
  config.rope_base = read_hf_rope_base(file, architecture);
  check_values(config, fail);
  read_hf_rope(file, architecture, config);
  check_rope(config, fail);
}

}  // namespace medusa
