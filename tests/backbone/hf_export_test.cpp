#include "backbone/hf_export.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
    const LayerWeights &x = a.layers[i], &y = b.layers[i];
    EXPECT_TRUE(at::equal(x.attention_norm, y.attention_norm));
    EXPECT_TRUE(at::equal(x.qkv, y.qkv));
    EXPECT_EQ(x.qkv_bias.defined(), y.qkv_bias.defined());
    if (x.qkv_bias.defined()) {
      EXPECT_TRUE(at::equal(x.qkv_bias, y.qkv_bias));
    }
    EXPECT_TRUE(at::equal(x.output, y.output));
    EXPECT_TRUE(at::equal(x.mlp_norm, y.mlp_norm));
    EXPECT_TRUE(at::equal(x.gate_up, y.gate_up));
    EXPECT_TRUE(at::equal(x.down, y.down));
  }
}

TEST(HfExport, WhatIsWrittenIsReadBackTheSame) {
  for (const bool tied : {true, false})
    for (const char* architecture : {"llama", "qwen2"}) {
      const fixtures::TempFolder folder;
      ModelConfig config = tiny_config();
      config.architecture = architecture;
      config.qkv_bias = std::string(architecture) == "qwen2";
      config.tied_output = tied;
      config.rope_factors.assign(16, 2.5);
      const Weights weights = tiny_weights(4, config);
      write_hf_model(folder.path(), weights, "some.gguf");
      const Weights back = load_weights(folder.path(), at::kFloat, at::kCPU);
      expect_same(back, weights);
      EXPECT_EQ(back.config.rope_factors, config.rope_factors);
      EXPECT_EQ(back.config.eos, config.eos);
      EXPECT_EQ(back.config.tied_output, tied);
    }
}

TEST(HfExport, AFoldersOwnFilesAreTakenOver) {
  const fixtures::TempFolder source, folder;
  const Weights weights = tiny_weights(4);
  write_hf_model(source.path(), weights, "some.gguf");
  auto config = nlohmann::json::parse(read_file(source.path() / "config.json"));
  config["note"] = "kept";
  write_file(source.path() / "config.json", config.dump());
  write_file(source.path() / "tokenizer.json", "{}");
  Weights cut = weights;
  cut.config.num_layers = 1;
  cut.layers.resize(1);
  write_hf_model(folder.path(), cut, source.path());
  const auto written = nlohmann::json::parse(read_file(folder.path() / "config.json"));
  EXPECT_EQ(written.at("note"), "kept");
  EXPECT_EQ(written.at("num_hidden_layers"), 1);
  EXPECT_EQ(read_file(folder.path() / "tokenizer.json"), "{}");
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
      "some.gguf: its rotary embedding is stretched by a tensor of factors, expected one that "
      "config.json can describe; use the Hugging Face folder of this model");
}

}  // namespace
}  // namespace medusa
