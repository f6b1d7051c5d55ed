#include "backbone/model_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backbone/rope_scaling.h"
#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
using nlohmann::json;

const json kConfig = {{"architectures", {"LlamaForCausalLM"}},
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
  ModelConfig read(const json& config) const {
    write_file(folder_.path() / "config.json", config.dump());
    return read_hf_config(folder_.path());
  }
  /// The message for the config with one key changed; null counts as missing.
  std::string error_with(const char* key, const json& value) const {
    json config = kConfig;
    config[key] = value;
    return fixtures::error_text(folder_, [&] { read(config); });
  }
  std::string error(const fixtures::GgufBuilder& builder) const {
    builder.write(folder_.path() / "a.gguf");
    return fixtures::error_text(folder_,
                                [&] { read_gguf_config(GgufFile(folder_.path() / "a.gguf")); });
  }

  fixtures::TempFolder folder_;
};

fixtures::GgufBuilder tiny_gguf() {
  fixtures::GgufBuilder builder;
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

constexpr const char* kHfRemedy =
    "; use the config.json that came with the model, or another model";

TEST_F(ModelConfigTest, ReadsConfigJson) {
  const ModelConfig config = read(kConfig);
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
  json config = kConfig;
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
  EXPECT_EQ(read(kConfig).eos, (std::vector<TokenId>{2, 7}));
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
                kHfRemedy);
  fixtures::GgufBuilder builder = tiny_gguf();
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
    EXPECT_EQ(error_with(key, value), "<>/config.json: " + message + kHfRemedy);
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
    EXPECT_EQ(error_with(key, value), "<>/config.json: " + message + kHfRemedy);
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

/// The same settings of another architecture.
json config_as(const char* type, const char* class_name) {
  json config = kConfig;
  config["model_type"] = type;
  config["architectures"] = {class_name};
  return config;
}

TEST_F(ModelConfigTest, ReadsWhichLayersSeeTheLastTokensOnly) {
  using Windows = std::vector<int64_t>;
  json mistral = config_as("mistral", "MistralForCausalLM");
  EXPECT_EQ(read(mistral).windows, Windows{});
  mistral["sliding_window"] = 256;  // of 256 tokens
  EXPECT_EQ(read(mistral).windows, Windows{});
  mistral["sliding_window"] = 128;
  EXPECT_EQ(read(mistral).windows, (Windows{128, 128}));
  mistral["sliding_window"] = 0;
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read(mistral); }),
            std::string("<>/config.json: 'sliding_window' is 0, expected 1 or more, or none") +
                kHfRemedy);

  json qwen = config_as("qwen2", "Qwen2ForCausalLM");
  qwen["sliding_window"] = 128;  // written, but not used
  EXPECT_TRUE(read(qwen).qkv_bias);
  EXPECT_EQ(read(qwen).windows, Windows{});
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(read(qwen).windows, (Windows{0, 0})) << "from the 28th layer on";
  qwen["max_window_layers"] = 1;
  EXPECT_EQ(read(qwen).windows, (Windows{0, 128}));
  qwen["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(read(qwen).windows, (Windows{128, 0}));
  qwen["layer_types"] = {"sliding_attention"};
  EXPECT_EQ(
      fixtures::error_text(folder_, [&] { read(qwen); }),
      std::string("<>/config.json: 'layer_types' is [\"sliding_attention\"], expected 2 names") +
          kHfRemedy);

  json llama = kConfig;  // transformers has no window for it
  llama["sliding_window"] = 128;
  EXPECT_EQ(read(llama).windows, Windows{});
}

TEST_F(ModelConfigTest, ReadsWhichLayersOfAGgufSeeTheLastTokensOnly) {
  using Windows = std::vector<int64_t>;
  const auto config_of = [&](const fixtures::GgufBuilder& builder) {
    builder.write(folder_.path() / "a.gguf");
    return read_gguf_config(GgufFile(folder_.path() / "a.gguf"));
  };
  const char* kWindow = "llama.attention.sliding_window";
  const char* kPattern = "llama.attention.sliding_window_pattern";
  fixtures::GgufBuilder gguf = tiny_gguf();  // 2 layers, 256 tokens
  EXPECT_EQ(config_of(gguf.set(kWindow, 256u)).windows, Windows{});
  EXPECT_EQ(config_of(gguf).architecture, "llama");
  EXPECT_EQ(config_of(gguf.set(kWindow, 128u)).windows, (Windows{128, 128}));
  EXPECT_EQ(config_of(gguf).architecture, "mistral") << "as it was before it became a file";
  EXPECT_EQ(config_of(gguf.set(kPattern, 2u)).windows, (Windows{128, 0}));
  EXPECT_EQ(config_of(gguf.set(kPattern, 1u)).windows, (Windows{0, 0}));
  EXPECT_EQ(config_of(gguf.set(kPattern, 0u)).windows, (Windows{128, 128}));
  gguf.drop(kPattern).booleans(kPattern, {false, true});
  EXPECT_EQ(config_of(gguf).windows, (Windows{0, 128}));
  gguf.drop(kPattern).booleans(kPattern, {false});
  EXPECT_EQ(error(gguf),
            "<>/a.gguf: 'llama.attention.sliding_window_pattern' is a list of 1, expected true or "
            "false for each of 2 layers; use another model");
  gguf.drop(kPattern).i32s(kPattern, {0, 1});
  EXPECT_EQ(error(gguf),
            "<>/a.gguf: the metadata key 'llama.attention.sliding_window_pattern' is [2 x i32], "
            "expected an array of true and false; convert or download the model again");
}

TEST_F(ModelConfigTest, ReadsHowMuchOfAHeadTurns) {
  json phi = config_as("phi3", "Phi3ForCausalLM");
  EXPECT_EQ(read(phi).turned(), 8);
  phi["partial_rotary_factor"] = 0.75;
  EXPECT_EQ(read(phi).turned(), 6);
  phi.erase("partial_rotary_factor");
  phi["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 2.0}, {"partial_rotary_factor", 0.5}};
  EXPECT_EQ(read(phi).turned(), 4);
  EXPECT_EQ(read(phi).rope_factors, std::vector<double>(2, 2.0));
  const auto refusal = [&](double part) {
    phi["rope_parameters"]["partial_rotary_factor"] = part;
    return fixtures::error_text(folder_, [&] { read(phi); });
  };
  const std::string where = "<>/config.json: ";
  EXPECT_EQ(refusal(0.4),
            where + "3 of a head's 8 dimensions turn, expected an even number of them" + kHfRemedy);
  EXPECT_EQ(refusal(0.1),
            where + "0 of a head's 8 dimensions turn, expected an even number of them" + kHfRemedy);
  EXPECT_EQ(refusal(1.5), where + "'partial_rotary_factor' is 1.5, expected 0 to 1" + kHfRemedy);
}

TEST_F(ModelConfigTest, ReadsWhichLayersDoNotTurn) {
  using Layers = std::vector<bool>;
  json config = config_as("smollm3", "SmolLM3ForCausalLM");
  config["num_hidden_layers"] = 5;
  for (const char* key : {"rope_theta", "tie_word_embeddings"}) config.erase(key);
  EXPECT_EQ(read(config).no_rope, (Layers{false, false, false, true, false}));
  EXPECT_EQ(read(config).rope_base, 2000000.0) << "its own, where none is written";
  EXPECT_TRUE(read(config).tied_output);
  config["no_rope_layer_interval"] = 2;
  EXPECT_EQ(read(config).no_rope, (Layers{false, true, false, true, false}));
  config["no_rope_layers"] = {0, 1, 1, 0, 1, 1, 0};
  EXPECT_EQ(read(config).no_rope, (Layers{true, false, false, true, false}));
  EXPECT_TRUE(read(config).turns(1));
  config["use_sliding_window"] = true;
  config["sliding_window"] = 128;
  EXPECT_EQ(read(config).windows, (std::vector<int64_t>{128, 0, 0, 128, 0}));
  config["no_rope_layers"] = {0, 1};
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read(config); }),
            std::string(
                "<>/config.json: 'no_rope_layers' is [0,1], expected 0 or 1 for each of 5 layers") +
                kHfRemedy);
}

TEST_F(ModelConfigTest, SomeLayersKeepWhatIsSaidOfThem) {
  ModelConfig config;
  config.num_layers = 4;
  EXPECT_TRUE(with_layers(config, std::vector<int64_t>{0, 2}).no_rope.empty());
  config.no_rope = {false, true, false, true};
  config.windows = {1, 2, 0, 4};
  const ModelConfig cut = with_layers(config, std::vector<int64_t>{1, 2});
  EXPECT_EQ(cut.num_layers, 2);
  EXPECT_EQ(cut.no_rope, (std::vector<bool>{true, false}));
  EXPECT_EQ(cut.windows, (std::vector<int64_t>{2, 0}));
}

TEST_F(ModelConfigTest, ReadsHowFarAStretchedModelReaches) {
  json config = kConfig;  // 256 tokens
  config["rope_scaling"] = {
      {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 256}};
  EXPECT_EQ(read(config).context, 1024) << "published with its first context";
  EXPECT_DOUBLE_EQ(read(config).rope_attention, 0.1 * std::log(4.0) + 1);
  config["rope_scaling"]["original_max_position_embeddings"] = 64;
  EXPECT_EQ(read(config).context, 256);
  config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 4.0}};
  EXPECT_EQ(read(config).context, 256) << "a cache cannot follow it further";
  EXPECT_TRUE(read(config).rope_factors.empty());
  config["original_max_position_embeddings"] = 64;
  config["rope_scaling"] = {{"type", "su"}, {"short_factor", {1, 2, 3, 4}}};
  EXPECT_EQ(read(config).context, 64) << "beyond it every key would turn by other factors";
  EXPECT_EQ(read(config).rope_factors, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(read(config).rope_attention, std::sqrt(1 + std::log(4.0) / std::log(64.0)));
}

TEST_F(ModelConfigTest, ReadsTheStretchingOfAGguf) {
  const auto factors = [&](const fixtures::GgufBuilder& builder) {
    builder.write(folder_.path() / "a.gguf");
    return read_gguf_config(GgufFile(folder_.path() / "a.gguf")).rope_factors;
  };
  EXPECT_TRUE(factors(tiny_gguf()).empty());
  fixtures::GgufBuilder linear = tiny_gguf();
  linear.set("llama.rope.scaling.type", "linear");
  linear.set("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(factors(linear), std::vector<double>(4, 4.0));
  fixtures::GgufBuilder yarn = linear;
  yarn.set("llama.rope.scaling.type", "yarn");
  yarn.set("llama.rope.scaling.original_context_length", 100u);
  EXPECT_EQ(factors(yarn), yarn_factors({.factor = 4, .first_context = 100}, 8, 10000));
  const ModelConfig stretched = read_gguf_config(GgufFile(folder_.path() / "a.gguf"));
  EXPECT_EQ(stretched.context, 400);
  EXPECT_DOUBLE_EQ(stretched.rope_attention, 0.1 * std::log(4.0) + 1);
  yarn.set("llama.rope.scaling.original_context_length", 0u);
  EXPECT_EQ(error(yarn),
            "<>/a.gguf: 'llama.rope.scaling.original_context_length' is 0, expected 2 to "
            "2147483647; use another model");
  fixtures::GgufBuilder tensor = tiny_gguf();
  tensor.tensor(kGgufRopeFactors, {3}, GgmlType::F32, std::string(12, 0));
  const std::string where = "<>/a.gguf: ", remedy = "; use another model";
  EXPECT_EQ(error(tensor), where +
                               "tensor 'rope_freqs.weight' is not 4 numbers of type F32, expected "
                               "a factor for each pair" +
                               remedy);
  tensor.drop(kGgufRopeFactors).tensor(kGgufRopeFactors, {4}, GgmlType::F32, std::string(16, 0));
  EXPECT_EQ(error(tensor),
            where + "a factor of the rotary embedding is 0, expected a positive number" + remedy);
}

TEST_F(ModelConfigTest, ReadsGgufMetadata) {
  tiny_gguf().write(folder_.path() / "a.gguf");
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
  fixtures::GgufBuilder builder = tiny_gguf();
  builder.set("general.architecture", "mistral");
  EXPECT_EQ(
      error(builder),
      where + "'general.architecture' is 'mistral', expected llama, phi3, qwen2, qwen3 or smollm3" +
          remedy);
  builder = tiny_gguf();
  builder.set("llama.rope.scaling.type", "longrope");
  EXPECT_EQ(error(builder),
            where +
                "a stretched rotary embedding (scaling 'longrope') that medusa does not run, "
                "expected linear, yarn, a tensor 'rope_freqs.weight' or "
                "'rope_factors_short.weight', or none" +
                remedy);
  builder = tiny_gguf();
  builder.set("llama.expert_count", 8u);
  EXPECT_EQ(error(builder), where +
                                "'llama.expert_count' is 8, a mixture of experts that medusa does "
                                "not run, expected none" +
                                remedy);
  builder = tiny_gguf();
  builder.set("llama.rope.dimension_count", 4u);
  EXPECT_EQ(error(builder),
            where + "'llama.rope.dimension_count' is 4, expected the head size 8" + remedy);
  builder = tiny_gguf();
  builder.set("tokenizer.ggml.eos_token_id", 100u);
  EXPECT_EQ(error(builder), where +
                                "'tokenizer.ggml.eos_token_id' is 100, expected an id below the "
                                "vocabulary size 100" +
                                remedy);
  builder = tiny_gguf();
  builder.set("llama.attention.head_count_kv", 4u);
  EXPECT_EQ(error(builder), where +
                                "6 attention heads do not share 4 key/value heads evenly, expected "
                                "a multiple" +
                                remedy);
}

TEST_F(ModelConfigTest, NamesTheMissingGgufKey) {
  fixtures::GgufBuilder builder = tiny_gguf();
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
