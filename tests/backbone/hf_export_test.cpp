#include "backbone/files/hf_export.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backbone/architecture.h"
#include "base/file.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

void expect_same(const Weights& a, const Weights& b) {
  EXPECT_TRUE(at::equal(a.embedding, b.embedding));
  EXPECT_TRUE(at::equal(a.lm_head, b.lm_head));
  EXPECT_TRUE(at::equal(a.final_norm, b.final_norm));
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    for (const auto& [name, part] : kLayerParts) {
      const at::Tensor &x = a.layers[i].*part, &y = b.layers[i].*part;
      ASSERT_EQ(x.defined(), y.defined()) << name;
      if (x.defined()) {
        EXPECT_TRUE(at::equal(x, y)) << name;
      }
    }
  }
}

/// With what sets the architecture apart.
ModelConfig config_of(const Architecture& architecture) {
  ModelConfig config = tiny_config();
  config.architecture = architecture.name;
  config.qkv_bias = architecture.qkv_bias;
  config.qk_norm = architecture.qk_norm;
  if (architecture.no_rope_interval > 0) config.no_rope = {true, false};
  if (architecture.windows == WindowRule::Always) config.windows = {100, 100};
  if (architecture.windows == WindowRule::Switched) config.windows = {0, 100};
  if (architecture.partial_rotary) config.rotary_dim = config.head_size * 3 / 4;
  config.rope_factors.assign(static_cast<size_t>(config.rotated() / 2), 2.5);
  return config;
}

TEST(HfExport, WhatIsWrittenIsReadBackTheSame) {
  for (const bool tied : {true, false})
    for (const Architecture& architecture : architectures()) {
      SCOPED_TRACE(architecture.name);
      const fixtures::TempFolder folder, again;
      ModelConfig config = config_of(architecture);
      config.tied_output = tied;
      const Weights weights = tiny_weights(4, config);
      write_hf_model(folder.path(), weights, "some.gguf");
      write_hf_model(again.path(), weights, folder.path());
      for (const auto& path : {folder.path(), again.path()}) {
        const Weights back = load_weights(path, at::kFloat, at::kCPU);
        expect_same(back, weights);
        EXPECT_EQ(back.config.architecture, config.architecture);
        EXPECT_EQ(back.config.rope_factors, config.rope_factors);
        EXPECT_EQ(back.config.rotary_dim, config.rotary_dim);
        EXPECT_EQ(back.config.no_rope, config.no_rope);
        EXPECT_EQ(back.config.windows, config.windows);
        EXPECT_EQ(back.config.eos, config.eos);
        EXPECT_EQ(back.config.tied_output, tied);
      }
    }
}

TEST(HfExport, ACutModelKeepsWhatIsSaidOfItsLayers) {
  const fixtures::TempFolder folder, cut;
  ModelConfig config = config_of(*find_architecture("smollm3"));
  config.num_layers = 4;
  config.no_rope = {false, true, false, true};
  config.windows = {0, 100, 0, 0};
  const Weights weights = tiny_weights(4, config);
  write_hf_model(folder.path(), weights, "some.gguf");
  const std::vector<int64_t> kept{0, 1, 3};
  Weights some = weights;
  some.config = with_layers(config, kept);
  some.layers = {weights.layers[0], weights.layers[1], weights.layers[3]};
  write_hf_model(cut.path(), some, folder.path());
  const ModelConfig back = read_hf_config(cut.path());
  EXPECT_EQ(back.num_layers, 3);
  EXPECT_EQ(back.no_rope, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(back.windows, (std::vector<int64_t>{0, 100, 0}));
}

/// What is left of a model with windows may have none, though layers from the 28th on have one by
/// default.
TEST(HfExport, ACutModelOfWholeLayersHasNoWindow) {
  const fixtures::TempFolder folder, cut;
  ModelConfig config = config_of(*find_architecture("qwen2"));
  config.num_layers = 30;
  config.windows.assign(30, 0);
  config.windows[1] = 100;
  const Weights weights = tiny_weights(4, config);
  write_hf_model(folder.path(), weights, "some.gguf");
  EXPECT_EQ(read_hf_config(folder.path()).windows, config.windows);
  std::vector<int64_t> kept(29);
  for (int64_t i = 0; i < 29; ++i) kept[static_cast<size_t>(i)] = i == 0 ? 0 : i + 1;
  Weights some = weights;
  some.config = with_layers(config, kept);
  some.layers.erase(some.layers.begin() + 1);
  write_hf_model(cut.path(), some, folder.path());
  EXPECT_TRUE(read_hf_config(cut.path()).windows.empty());
}

TEST(HfExport, AMistralWithoutAWindowHasNoneOnceItIsWritten) {
  const fixtures::TempFolder folder, again;
  ModelConfig config = config_of(*find_architecture("mistral"));
  config.context = 8192;
  config.windows.clear();
  const Weights weights = tiny_weights(4, config);
  write_hf_model(folder.path(), weights, "some.gguf");
  EXPECT_TRUE(read_hf_config(folder.path()).windows.empty());
  write_hf_model(again.path(), weights, folder.path());
  EXPECT_TRUE(read_hf_config(again.path()).windows.empty());

  Weights some = weights;
  some.config.windows = {0, 0};  // as a GGUF file may say it
  write_hf_model(again.path(), some, "some.gguf");
  EXPECT_TRUE(read_hf_config(again.path()).windows.empty());
  some.config.windows = {100, 0};
  EXPECT_TRUE(fixtures::error_text([&] {
                write_hf_model(again.path(), some, "some.gguf");
              }).starts_with("the mistral model has a window in 1 of 2 layers, expected "));
}

TEST(HfExport, AFoldersOwnFilesAreTakenOver) {
  const fixtures::TempFolder source, folder;
  const Weights weights = tiny_weights(4);
  write_hf_model(source.path(), weights, "some.gguf");
  auto config = nlohmann::json::parse(read_file(source.path() / "config.json"));
  config["note"] = "kept";
  config["quantization_config"] = {{"quant_method", "fp8"}};
  write_file(source.path() / "config.json", config.dump());
  // Whatever a tokenizer may be read from.
  const std::vector<std::string> tokenizer{"tokenizer.json",
                                           "tokenizer.model",
                                           "vocab.json",
                                           "merges.txt",
                                           "added_tokens.json",
                                           "tokenizer.gguf",
                                           "tokenizer_config.json",
                                           "chat_template.jinja"};
  for (const std::string& name : tokenizer) write_file(source.path() / name, "of " + name);
  Weights cut = weights;
  cut.config.num_layers = 1;
  cut.layers.resize(1);
  write_hf_model(folder.path(), cut, source.path());
  const auto written = nlohmann::json::parse(read_file(folder.path() / "config.json"));
  EXPECT_EQ(written.at("note"), "kept");
  EXPECT_FALSE(written.contains("quantization_config"));  // the weights are plain now
  EXPECT_EQ(written.at("num_hidden_layers"), 1);
  for (const std::string& name : tokenizer)
    EXPECT_EQ(read_file(folder.path() / name), "of " + name);
  expect_same(load_weights(folder.path(), at::kFloat, at::kCPU), cut);
}

TEST(HfExport, AnLmHeadThatIsTiedNoMoreIsWrittenBesideTheEmbedding) {
  const fixtures::TempFolder source, folder;
  Weights weights = tiny_weights(4);
  write_hf_model(source.path(), weights, "some.gguf");
  weights.lm_head = weights.embedding * 2;
  weights.config.tied_output = false;
  write_hf_model(folder.path(), weights, source.path());
  const Weights back = load_weights(folder.path(), at::kFloat, at::kCPU);
  EXPECT_FALSE(back.config.tied_output);
  expect_same(back, weights);
}

TEST(HfExport, NarrowedWeightsAreInBfloat16AndTiedOnesStayTied) {
  const Weights weights = narrowed(tiny_weights(4));
  EXPECT_TRUE(weights.lm_head.is_same(weights.embedding));
  EXPECT_EQ(weights.layers[1].gate_up.scalar_type(), at::kBFloat16);
  EXPECT_EQ(weights.final_norm.scalar_type(), at::kFloat);
  const fixtures::TempFolder source, folder;
  write_hf_model(source.path(), tiny_weights(4), "some.gguf");
  write_hf_model(folder.path(), weights, source.path());
  const auto config = nlohmann::json::parse(read_file(folder.path() / "config.json"));
  EXPECT_EQ(config.at("torch_dtype"), "bfloat16") << "not what the source says";
}

TEST(HfExport, FactorsThatConfigJsonHasNoWordsForAreTheUsersError) {
  const fixtures::TempFolder folder;
  ModelConfig config = tiny_config();
  config.rope_factors.assign(16, 1.0);
  config.rope_factors[3] = 2;
  EXPECT_EQ(
      fixtures::error_text(
          [&] { write_hf_model(folder.path(), tiny_weights(4, config), "some.gguf"); }),
      "some.gguf: its rotary embedding is stretched by factors without a rule, expected one that "
      "config.json can describe; use the Hugging Face folder of this model");
}

}  // namespace
}  // namespace medusa
