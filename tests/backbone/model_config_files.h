// A model's settings as files have them, for tests of what is read from these.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "backbone/model_config.h"
#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa::fixtures {

/// A config.json.
inline const nlohmann::json kConfigJson = {{"architectures", {"LlamaForCausalLM"}},
                                           {"model_type", "llama"},
                                           {"hidden_size", 48},
                                           {"intermediate_size", 96},
                                           {"num_hidden_layers", 2},
                                           {"num_attention_heads", 6},
                                           {"num_key_value_heads", 3},
                                           {"vocab_size", 100},
                                           {"max_position_embeddings", 256},
                                           {"rms_norm_eps", 1e-5},
                                           {"rope_theta", 20000.0},
                                           {"rope_scaling", nullptr},
                                           {"tie_word_embeddings", true},
                                           {"eos_token_id", 2},
                                           {"hidden_act", "silu"}};

class ModelConfigTest : public testing::Test {
 protected:
  ModelConfig read(const nlohmann::json& config) const {
    write_file(folder_.path() / "config.json", config.dump());
    return read_hf_config(folder_.path());
  }
  /// The message for the config with one key changed; null counts as missing.
  std::string error_with(const char* key, const nlohmann::json& value) const {
    nlohmann::json config = kConfigJson;
    config[key] = value;
    return error_text(folder_, [&] { read(config); });
  }
  std::string error(const GgufBuilder& builder) const {
    builder.write(folder_.path() / "a.gguf");
    return error_text(folder_, [&] { read_gguf_config(GgufFile(folder_.path() / "a.gguf")); });
  }

  TempFolder folder_;
};

/// The same model as a GGUF file.
inline GgufBuilder tiny_gguf() {
  GgufBuilder builder;
  builder.set("general.architecture", "llama");
  builder.set("llama.block_count", 2u);
  builder.set("llama.embedding_length", 48u);
  builder.set("llama.attention.head_count", 6u);
  builder.set("llama.attention.head_count_kv", 3u);
  builder.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  builder.set("llama.feed_forward_length", 96u);
  builder.set("llama.context_length", 256u);
  builder.set("tokenizer.ggml.eos_token_id", 2u);
  builder.tensor("token_embd.weight", {48, 100}, GgmlType::F32, std::string(48 * 100 * 4, 0));
  return builder;
}

inline constexpr const char* kHfRemedy =
    "; use the config.json that came with the model, or another model";

}  // namespace medusa::fixtures
