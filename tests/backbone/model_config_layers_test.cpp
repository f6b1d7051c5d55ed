// What is read of layers that differ, and of the rotary embedding.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backbone/model_config.h"
#include "backbone/rope_scaling.h"
#include "base/formats/gguf_file.h"
#include "tests/backbone/model_config_files.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {
using fixtures::ModelConfigTest;
using nlohmann::json;

/// The same settings of another architecture.
json config_as(const char* type, const char* class_name) {
  json config = fixtures::kConfigJson;
  config["model_type"] = type;
  config["architectures"] = {class_name};
  return config;
}

TEST_F(ModelConfigTest, ReadsWhichLayersSeeTheLastTokensOnly) {
  using Windows = std::vector<int64_t>;
  json mistral = config_as("mistral", "MistralForCausalLM");
  EXPECT_EQ(read(mistral).windows, Windows{});
  json vast = mistral;
  vast["max_position_embeddings"] = 5000;
  EXPECT_EQ(read(vast).windows, (Windows{4096, 4096})) << "as transformers has it";
  vast["sliding_window"] = nullptr;
  EXPECT_EQ(read(vast).windows, Windows{});
  mistral["sliding_window"] = 256;  // of 256 tokens
  EXPECT_EQ(read(mistral).windows, Windows{});
  mistral["sliding_window"] = 128;
  EXPECT_EQ(read(mistral).windows, (Windows{128, 128}));
  mistral["sliding_window"] = 0;
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read(mistral); }),
            std::string("<>/config.json: 'sliding_window' is 0, expected 1 or more, or none") +
                fixtures::kHfRemedy);

  json qwen = config_as("qwen2", "Qwen2ForCausalLM");
  qwen["sliding_window"] = 128;  // written, but not used
  EXPECT_TRUE(read(qwen).qkv_bias);
  EXPECT_EQ(read(qwen).windows, Windows{});
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(read(qwen).windows, Windows{}) << "from the 28th layer on";
  qwen["max_window_layers"] = 1;
  EXPECT_EQ(read(qwen).windows, (Windows{0, 128}));
  json unsaid = qwen;
  unsaid.erase("sliding_window");
  unsaid["max_position_embeddings"] = 5000;
  EXPECT_EQ(read(unsaid).windows, (Windows{0, 4096}));
  qwen["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(read(qwen).windows, (Windows{128, 0}));
  qwen["layer_types"] = {"sliding_attention"};
  EXPECT_EQ(
      fixtures::error_text(folder_, [&] { read(qwen); }),
      std::string("<>/config.json: 'layer_types' is [\"sliding_attention\"], expected 2 names") +
          fixtures::kHfRemedy);

  json llama = fixtures::kConfigJson;  // transformers has no window for it
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
  fixtures::GgufBuilder gguf = fixtures::tiny_gguf();  // 2 layers, 256 tokens
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

TEST_F(ModelConfigTest, ReadsHowMuchOfAHeadIsRotated) {
  json phi = config_as("phi3", "Phi3ForCausalLM");
  EXPECT_EQ(read(phi).rotated(), 8);
  phi["partial_rotary_factor"] = 0.75;
  EXPECT_EQ(read(phi).rotated(), 6);
  phi.erase("partial_rotary_factor");
  phi["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 2.0}, {"partial_rotary_factor", 0.5}};
  EXPECT_EQ(read(phi).rotated(), 4);
  EXPECT_EQ(read(phi).rope_factors, std::vector<double>(2, 2.0));
  const auto refusal = [&](double part) {
    phi["rope_parameters"]["partial_rotary_factor"] = part;
    return fixtures::error_text(folder_, [&] { read(phi); });
  };
  const std::string where = "<>/config.json: ";
  EXPECT_EQ(refusal(0.4), where +
                              "3 of a head's 8 dimensions turn, expected an even number of them" +
                              fixtures::kHfRemedy);
  EXPECT_EQ(refusal(0.1), where +
                              "0 of a head's 8 dimensions turn, expected an even number of them" +
                              fixtures::kHfRemedy);
  EXPECT_EQ(refusal(1.5),
            where + "'partial_rotary_factor' is 1.5, expected 0 to 1" + fixtures::kHfRemedy);
}

TEST_F(ModelConfigTest, ReadsWhichLayersHaveNoRope) {
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
  EXPECT_TRUE(read(config).uses_rope(1));
  config["use_sliding_window"] = true;
  config["sliding_window"] = 128;
  EXPECT_EQ(read(config).windows, (std::vector<int64_t>{128, 0, 0, 128, 0}));
  config["no_rope_layers"] = {0, 1};
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read(config); }),
            std::string(
                "<>/config.json: 'no_rope_layers' is [0,1], expected 0 or 1 for each of 5 layers") +
                fixtures::kHfRemedy);
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
  EXPECT_TRUE(with_layers(config, std::vector<int64_t>{2}).windows.empty());
}

TEST_F(ModelConfigTest, ReadsHowFarAStretchedModelReaches) {
  json config = fixtures::kConfigJson;  // 256 tokens
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
  EXPECT_TRUE(factors(fixtures::tiny_gguf()).empty());
  fixtures::GgufBuilder linear = fixtures::tiny_gguf();
  linear.set("llama.rope.scaling.type", "linear");
  linear.set("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(factors(linear), std::vector<double>(4, 4.0));
  fixtures::GgufBuilder none = linear;
  none.set("llama.rope.scaling.type", "none");
  EXPECT_TRUE(factors(none).empty()) << "whatever factor stands beside it";
  fixtures::GgufBuilder unsaid = fixtures::tiny_gguf();
  unsaid.set("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(factors(unsaid), std::vector<double>(4, 4.0));
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
  fixtures::GgufBuilder tensor = fixtures::tiny_gguf();
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

}  // namespace
}  // namespace medusa
