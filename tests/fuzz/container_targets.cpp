#include "backbone/model_config.h"
#include "base/formats/gguf_file.h"
#include "base/formats/safetensors_file.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"
#include "tests/fuzz/fuzz_target.h"

namespace medusa::fuzz {
namespace {

namespace fs = std::filesystem;

std::string safetensors_seed() {
  const fixtures::TempFolder folder;
  const std::vector<uint8_t> data(24);
  const SafetensorsEntry entries[] = {{"a", "F32", {2, 2}, std::span(data).first(16)},
                                      {"b", "BF16", {1, 2}, std::span(data).first(4)},
                                      {"c", "I8", {}, std::span(data).first(1)}};
  write_safetensors(folder / "m.safetensors", entries, {{"format", "pt"}});
  return read_file(folder / "m.safetensors");
}

void run_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  for (const auto& entry : file.entries()) touch(entry.bytes);
}

fixtures::GgufBuilder llama_gguf(uint32_t version) {
  fixtures::GgufBuilder builder(version);
  builder.text("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .u32("llama.embedding_length", 8)
      .u32("llama.attention.head_count", 2)
      .u32("llama.attention.head_count_kv", 1)
      .u32("llama.feed_forward_length", 16)
      .u32("llama.context_length", 64)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .f32("llama.rope.freq_base", 10000)
      .text("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens",
               {"<unk>", "<s>", "</s>", "\u2581", "a", "b", "\u2581a", "ab"})
      .f32s("tokenizer.ggml.scores", {0, 0, 0, -4, -5, -6, -1, -2})
      .i32s("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1, 1})
      .u32("tokenizer.ggml.unknown_token_id", 0)
      .boolean("tokenizer.ggml.add_bos_token", true)
      .tensor("token_embd.weight", {8, 2}, std::vector<float>(16))
      .tensor("output_norm.weight", {8}, std::vector<float>(8));
  return builder;
}

void run_gguf(const std::string& path) {
  const GgufFile file(path);
  for (const auto& entry : file.entries()) (void)describe(entry);
  for (const auto& tensor : file.tensors()) touch(file.data(tensor));
  (void)read_gguf_config(file);
}

constexpr const char* kLlamaConfig = R"({"architectures": ["LlamaForCausalLM"],
 "model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
 "max_position_embeddings": 512, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
 "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 128},
 "tie_word_embeddings": true, "eos_token_id": [2, 3], "attention_bias": false})";
constexpr const char* kSmolConfig = R"({"architectures": ["SmolLM3ForCausalLM"],
 "model_type": "smollm3", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
 "max_position_embeddings": 512, "rms_norm_eps": 1e-06, "use_sliding_window": true,
 "sliding_window": 64, "no_rope_layers": [1, 0], "layer_types": ["full_attention",
 "sliding_attention"], "rope_scaling": {"type": "yarn", "factor": 4,
 "original_max_position_embeddings": 128}, "quantization_config": {"quant_method": "fp8"}})";
constexpr const char* kQwenConfig = R"({"architectures": ["Qwen2ForCausalLM"],
 "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
 "max_position_embeddings": 512, "rms_norm_eps": 1e-06, "use_sliding_window": false,
 "sliding_window": 512, "rope_scaling": {"type": "linear", "factor": 2}, "eos_token_id": 1})";

/// A stretch that makes a context of no int64_t.
std::string negative_stretch() {
  std::string config = kSmolConfig;
  const std::string factor = "\"factor\": 4";
  return config.replace(config.find(factor), factor.size(), "\"factor\": -18446744073709551615");
}

}  // namespace

std::vector<FuzzTarget> container_targets() {
  const std::vector<std::string> json = {"{",  "}",    "[",     "]",    ",",
                                         ":",  "\"",   "null",  "true", "{}",
                                         "[]", "\"\"", "1e999", "-1",   "\\u0000"};
  auto safetensors = json;
  for (const char* word : {"\"dtype\"", "\"F32\"", "\"F4\"", "\"shape\"", "\"data_offsets\"",
                           "\"__metadata__\"", "[0,0]"})
    safetensors.emplace_back(word);
  auto config = json;
  for (const char* word :
       {"\"mistral\"", "\"phi3\"", "\"qwen3\"", "\"rope_parameters\"", "\"head_dim\"",
        "\"sliding_window\"", "\"mlp_bias\"", "\"rope_type\"", "\"yarn\"", "\"dynamic\"",
        "\"longrope\"", "\"short_factor\"", "\"truncate\"", "\"layer_types\"", "\"no_rope_layers\"",
        "\"quantization_config\"", "\"quant_method\""})
    config.emplace_back(word);
  return {
      {"safetensors", "m.safetensors", {safetensors_seed()}, safetensors, run_safetensors},
      {"gguf",
       "m.gguf",
       {llama_gguf(3).bytes(), llama_gguf(2).bytes()},
       {"general.alignment", "llama.rope.scaling.type", "yarn", "qwen2", "phi3", "smollm3",
        "rope_factors_short.weight", "split.count", "split.no", std::string(8, '\0'),
        std::string(4, '\xFF')},
       run_gguf},
      {.name = "config.json",
       .file = "config.json",
       .seeds = {kLlamaConfig, kQwenConfig, kSmolConfig},
       .tokens = config,
       .run = [](const std::string& path) { (void)read_hf_config(fs::path(path).parent_path()); },
       .past_findings = {negative_stretch()}}};
}

}  // namespace medusa::fuzz
