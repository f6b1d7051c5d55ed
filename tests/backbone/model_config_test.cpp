#include "backbone/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "tests/backbone/model_config_files.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {
using fixtures::ModelConfigTest;
using nlohmann::json;

TEST_F(ModelConfigTest, ReadsConfigJson) {
  const ModelConfig config = read(fixtures::kConfigJson);
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.hidden_size, 48);
  EXPECT_EQ(config.num_heads, 6);
  EXPECT_EQ(config.num_kv_heads, 3);
  EXPECT_EQ(config.head_size, 8);
  EXPECT_EQ(config.mlp_size, 96);
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.context, 256);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.rope_base, 20000.0);
  EXPECT_TRUE(config.tied_output);
  EXPECT_EQ(config.eos, std::vector<TokenId>{2});
}

TEST_F(ModelConfigTest, KnowsWhatHuggingFaceLeavesOut) {
  json config = fixtures::kConfigJson;
  for (const char* key :
       {"num_key_value_heads", "rope_theta", "tie_word_embeddings", "rope_scaling"})
    config.erase(key);
  config["head_dim"] = 16;
  config["eos_token_id"] = {2, 5};
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500.0}};
  const ModelConfig read_config = read(config);
  EXPECT_EQ(read_config.num_kv_heads, 6);
  EXPECT_EQ(read_config.head_size, 16);
  EXPECT_EQ(read_config.rope_base, 500.0);
  EXPECT_FALSE(read_config.tied_output);
  EXPECT_EQ(read_config.eos, (std::vector<TokenId>{2, 5}));
  config.erase("rope_parameters");
  EXPECT_EQ(read(config).rope_base, 10000.0);
}

TEST_F(ModelConfigTest, AddsTheEndTokensOfGenerationConfig) {
  write_file(folder_.path() / "generation_config.json", R"({"eos_token_id": [2, 7]})");
  EXPECT_EQ(read(fixtures::kConfigJson).eos, (std::vector<TokenId>{2, 7}));
}

TEST_F(ModelConfigTest, RejectsConfigJsonThatIsMissingOrBroken) {
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read_hf_config(folder_.path()); }),
            "<>/config.json: no such file; check the path");
  write_file(folder_.path() / "config.json", "{\"hidden");
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read_hf_config(folder_.path()); }),
            "<>/config.json: is not a JSON object; copy or download the file again");
}

TEST_F(ModelConfigTest, AContextWhoseRotaryTableNoMachineHoldsIsRefused) {
  EXPECT_EQ(error_with("max_position_embeddings", 1 << 25),
            std::string("<>/config.json: the context length is 33554432, expected 1 to 16777216") +
                fixtures::kHfRemedy);
  fixtures::GgufBuilder builder = fixtures::tiny_gguf();
  builder.set("llama.attention.head_count", 1u);
  builder.set("llama.attention.head_count_kv", 1u);
  builder.set("llama.attention.key_length", 128u);
  builder.set("llama.attention.value_length", 128u);
  builder.set("llama.context_length", 1u << 23);
  EXPECT_NE(error(builder).find("the context length is 8388608, expected 1 to 4194304"),
            std::string::npos)
      << error(builder);
  builder.set("llama.context_length", 1u << 22);
  EXPECT_EQ(error(builder), "(no error)");
}

TEST_F(ModelConfigTest, RejectsMissingMistypedAndImpossibleValues) {
  const auto expect = [&](const char* key, const json& value, const std::string& message) {
    EXPECT_EQ(error_with(key, value), "<>/config.json: " + message + fixtures::kHfRemedy);
  };
  expect("hidden_size", nullptr, "'hidden_size' is missing, expected a whole number");
  expect("hidden_size", "48", "'hidden_size' is \"48\", expected a whole number");
  expect("hidden_size", 48.5, "'hidden_size' is 48.5, expected a whole number");
  expect("rms_norm_eps", "small", "'rms_norm_eps' is \"small\", expected a number");
  expect("tie_word_embeddings", 1, "'tie_word_embeddings' is 1, expected true or false");
  expect("eos_token_id", {2, "x"},
         "'eos_token_id' is [2,\"x\"], expected a token id or a list of token ids");
  expect("num_hidden_layers", 0, "the number of layers is 0, expected 1 to 65536");
  expect("num_attention_heads", 0, "the number of attention heads is 0, expected 1 to 2147483647");
  expect("num_key_value_heads", 4,
         "6 attention heads do not share 4 key/value heads evenly, expected a multiple");
  expect("hidden_size", 50,
         "the hidden size 50 is not a multiple of the 6 attention heads, and no head size is "
         "given");
  expect(
      "head_dim", 7,
      "the head size is 7, expected an even number up to 4096: the rotary embedding turns pairs");
  expect("rms_norm_eps", 0, "the norm's epsilon is 0, expected a small positive number");
  expect("rope_theta", 1, "the rotary base is 1, expected a float32 above 1");
  expect("rope_theta", 1e308, "the rotary base is 1e+308, expected a float32 above 1");
  expect("eos_token_id", 100, "the end token is 100, expected an id below the vocabulary size 100");
}

TEST_F(ModelConfigTest, RejectsWhatIsNotRun) {
  const auto expect = [&](const char* key, const json& value, const std::string& message) {
    EXPECT_EQ(error_with(key, value), "<>/config.json: " + message + fixtures::kHfRemedy);
  };
  expect("model_type", "gpt2",
         "'model_type' is 'gpt2', expected llama, mistral, phi3, qwen2, qwen3 or smollm3");
  expect(
      "architectures", {"LlamaForSequenceClassification"},
      "'architectures' is [\"LlamaForSequenceClassification\"], expected [\"LlamaForCausalLM\"]");
  expect("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}},
         "the rotary embedding's 'low_freq_factor' is missing, expected a number");
  expect("rope_scaling", {{"type", "linear"}, {"factor", "2"}},
         "the rotary embedding's 'factor' is \"2\", expected a number");
  expect("rope_scaling", {{"type", "linear"}, {"factor", -2.0}},
         "a factor of the rotary embedding is -2, expected a positive number");
  expect("rope_parameters", {{"rope_type", "proportional"}},
         "'rope_parameters' asks for 'proportional', a stretched rotary embedding that medusa does "
         "not run, expected llama3, linear, dynamic, yarn, longrope or none");
  expect("rope_scaling", {{"rope_type", "yarn"}, {"truncate", 1}},
         "the rotary embedding's 'truncate' is 1, expected true or false");
  expect("rope_scaling", {{"type", "yarn"}, {"original_max_position_embeddings", 0}},
         "'original_max_position_embeddings' is 0, expected 2 to 2147483647");
  expect("rope_scaling", {{"type", "yarn"}, {"factor", 2.0}, {"attention_factor", -1}},
         "the rotary embedding's attention factor is -1, expected a positive number");
  expect("rope_scaling", {{"type", "yarn"}, {"factor", -1e20}},  // a context of no int64_t
         "a factor of the rotary embedding is -1e+20, expected a positive number");
  expect("rope_scaling", {{"type", "dynamic"}},
         "the rotary embedding's 'factor' is missing, expected a number");
  expect("rope_scaling", {{"type", "longrope"}, {"short_factor", {1, 2, 3}}},
         "the rotary embedding's 'short_factor' is [1,2,3], expected a list of 4 numbers");
  expect("partial_rotary_factor", 0.75,
         "'partial_rotary_factor' is 0.75, expected 1: heads of a llama model turn whole");
  expect("attention_bias", true,
         "'attention_bias' is true, expected false: medusa runs such layers without bias");
  expect("mlp_bias", true,
         "'mlp_bias' is true, expected false: medusa runs such layers without bias");
  expect("hidden_act", "gelu", "'hidden_act' is 'gelu', expected silu");
}

TEST_F(ModelConfigTest, ReadsGgufMetadata) {
  fixtures::tiny_gguf().write(folder_.path() / "a.gguf");
  const ModelConfig config = read_gguf_config(GgufFile(folder_.path() / "a.gguf"));
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.hidden_size, 48);
  EXPECT_EQ(config.num_heads, 6);
  EXPECT_EQ(config.num_kv_heads, 3);
  EXPECT_EQ(config.head_size, 8);
  EXPECT_EQ(config.mlp_size, 96);
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.context, 256);
  EXPECT_FLOAT_EQ(static_cast<float>(config.norm_epsilon), 1e-5f);
  EXPECT_EQ(config.rope_base, 10000.0);
  EXPECT_TRUE(config.tied_output);
  EXPECT_EQ(config.eos, std::vector<TokenId>{2});
}

TEST_F(ModelConfigTest, RejectsGgufMetadataThatIsNotRun) {
  const std::string where = "<>/a.gguf: ", remedy = "; use another model";
  fixtures::GgufBuilder builder = fixtures::tiny_gguf();
  builder.set("general.architecture", "mistral");
  EXPECT_EQ(
      error(builder),
      where + "'general.architecture' is 'mistral', expected llama, phi3, qwen2, qwen3 or smollm3" +
          remedy);
  builder = fixtures::tiny_gguf();
  builder.set("llama.rope.scaling.type", "longrope");
  EXPECT_EQ(error(builder),
            where +
                "a stretched rotary embedding (scaling 'longrope') that medusa does not run, "
                "expected linear, yarn, a tensor 'rope_freqs.weight' or "
                "'rope_factors_short.weight', or none" +
                remedy);
  builder = fixtures::tiny_gguf();
  builder.set("llama.expert_count", 8u);
  EXPECT_EQ(error(builder), where +
                                "'llama.expert_count' is 8, a mixture of experts that medusa does "
                                "not run, expected none" +
                                remedy);
  builder = fixtures::tiny_gguf();
  builder.set("llama.rope.dimension_count", 4u);
  EXPECT_EQ(error(builder),
            where + "'llama.rope.dimension_count' is 4, expected the head size 8" + remedy);
  builder = fixtures::tiny_gguf();
  builder.set("tokenizer.ggml.eos_token_id", 100u);
  EXPECT_EQ(error(builder), where +
                                "'tokenizer.ggml.eos_token_id' is 100, expected an id below the "
                                "vocabulary size 100" +
                                remedy);
  builder = fixtures::tiny_gguf();
  builder.set("llama.attention.head_count_kv", 4u);
  EXPECT_EQ(error(builder), where +
                                "6 attention heads do not share 4 key/value heads evenly, expected "
                                "a multiple" +
                                remedy);
}

TEST_F(ModelConfigTest, NamesTheMissingGgufKey) {
  fixtures::GgufBuilder builder = fixtures::tiny_gguf();
  builder.drop("llama.block_count");
  const std::string text = error(builder);
  EXPECT_TRUE(text.starts_with("<>/a.gguf: ")) << text;
  EXPECT_NE(text.find("'llama.block_count'"), std::string::npos) << text;
  builder.set("llama.block_count", "two");
  const std::string mistyped = error(builder);
  EXPECT_NE(mistyped.find("'llama.block_count'"), std::string::npos) << mistyped;
}

}  // namespace
}  // namespace medusa
