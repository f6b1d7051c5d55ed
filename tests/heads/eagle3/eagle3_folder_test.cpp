#include "heads/eagle3/eagle3_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/formats/torch_file.h"
#include "tests/base/error_text.h"
#include "tests/heads/eagle3/small_eagle3.h"

namespace medusa {
namespace {

using nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

class Eagle3FolderTest : public testing::Test {
 protected:
  /// What reading a published draft that was changed says.
  std::string refusal(const std::function<void(Tensors&, json&)>& change,
                      const ModelConfig& target = fixtures::eagle3_target_config()) {
    Tensors tensors = fixtures::small_eagle3_tensors();
    json config = fixtures::small_eagle3_config();
    change(tensors, config);
    fixtures::publish_eagle3(folder_.path(), tensors, config);
    return fixtures::error_text(folder_,
                                [&] { eagle3_weights(read_eagle3_files(folder_.path()), target); });
  }
  Eagle3Files published(const std::function<void(Tensors&, json&)>& change) {
    EXPECT_EQ(refusal(change), "(no error)");
    return read_eagle3_files(folder_.path());
  }

  fixtures::TempFolder folder_;
};

void expect_same(const Eagle3Weights& a, const Eagle3Weights& b) {
  EXPECT_EQ(a.feature_layers, b.feature_layers);
  EXPECT_EQ(a.tokens, b.tokens);
  for (at::Tensor Eagle3Weights::*each :
       {&Eagle3Weights::fuse, &Eagle3Weights::token_norm, &Eagle3Weights::state_norm,
        &Eagle3Weights::final_norm, &Eagle3Weights::lm_head})
    EXPECT_TRUE(at::equal(a.*each, b.*each));
  for (const auto& [name, part] : kLayerParts)
    if ((a.layer.*part).defined()) {
      EXPECT_TRUE(at::equal(a.layer.*part, b.layer.*part)) << name;
    }
}

TEST_F(Eagle3FolderTest, IsReadAsItIsPublished) {
  const Eagle3Files files = published([](Tensors&, json&) {});
  EXPECT_EQ(files.draft_vocab, 40);
  EXPECT_EQ(files.num_features, 3);
  EXPECT_FALSE(files.own_embedding);
  EXPECT_EQ(files.config.rope_base, 10000);  // where the settings say nothing, as in transformers
  const Tensors tensors = fixtures::small_eagle3_tensors();
  const Eagle3Weights weights = eagle3_weights(files, fixtures::eagle3_target_config());
  EXPECT_EQ(weights.feature_layers, (std::vector<int32_t>{2, 4, 5}));
  EXPECT_EQ(weights.tokens[0], 1);
  EXPECT_EQ(weights.tokens[39], 118);
  EXPECT_TRUE(at::equal(weights.fuse, tensors.at("fc.weight")));
  EXPECT_TRUE(at::equal(weights.token_norm, tensors.at("midlayer.input_layernorm.weight")));
  EXPECT_TRUE(at::equal(weights.state_norm, tensors.at("midlayer.hidden_norm.weight")));
  EXPECT_TRUE(at::equal(weights.layer.qkv.narrow(0, 128, 64),
                        tensors.at("midlayer.self_attn.k_proj.weight")));
  EXPECT_FALSE(weights.embedding.defined());
}

TEST_F(Eagle3FolderTest, OtherFilesAndNamesOfTheSameDraft) {
  const Eagle3Weights expected =
      eagle3_weights(published([](Tensors&, json&) {}), fixtures::eagle3_target_config());
  const Eagle3Files renamed = published([](Tensors& tensors, json&) {
    Tensors other;
    for (auto& [name, tensor] : tensors) {
      std::string by = name;
      if (by.starts_with("midlayer.")) by = "layers.0." + by.substr(9);
      if (by == "norm.weight") by = "model.norm.weight";
      other[by] = tensor;
    }
    other.erase("t2d");
    tensors = other;
  });
  expect_same(eagle3_weights(renamed, fixtures::eagle3_target_config()), expected);
  const fixtures::TempFolder torch;  // as EAGLE's own are
  const SafetensorsFile file(folder_ / "model.safetensors");
  write_torch_file(torch / "pytorch_model.bin", file.entries());
  write_file(torch / "config.json", fixtures::small_eagle3_config().dump());
  expect_same(eagle3_weights(read_eagle3_files(torch.path()), fixtures::eagle3_target_config()),
              expected);
  EXPECT_TRUE(is_eagle3(torch.path()));
  EXPECT_TRUE(is_eagle3(torch / "pytorch_model.bin"));
  EXPECT_FALSE(is_eagle3(torch / "nothing/there"));
}

TEST_F(Eagle3FolderTest, LayersThatAreListed) {
  const auto layers = [&](const json& more) {
    return eagle3_weights(published([&](Tensors&, json& config) { config.update(more); }),
                          fixtures::eagle3_target_config())
        .feature_layers;
  };
  const char* ids = "eagle_aux_hidden_state_layer_ids";
  EXPECT_EQ(layers({{ids, {1, 3, 8}}}), (std::vector<int32_t>{1, 3, 8}));
  EXPECT_EQ(layers({{"eagle_config", {{ids, {1, 3, 7}}}}}), (std::vector<int32_t>{2, 4, 8}));
  EXPECT_EQ(layers({{"eagle_config", {{ids, json::array()}}}}), (std::vector<int32_t>{2, 4, 5}));
}

TEST_F(Eagle3FolderTest, ItsOwnEmbeddingAndAWholeVocabulary) {
  const Eagle3Files files = published([](Tensors& tensors, json& config) {
    tensors["embed_tokens.weight"] = seeded_fill("embed", {130, 64});
    tensors["lm_head.weight"] = seeded_fill("lm_head", {130, 64});
    tensors.erase("d2t");
    tensors.erase("t2d");
    config.erase("draft_vocab_size");
  });
  const Eagle3Weights weights = eagle3_weights(files, fixtures::eagle3_target_config());
  EXPECT_TRUE(at::equal(weights.embedding, seeded_fill("embed", {130, 64})));
  EXPECT_EQ(weights.tokens.size(), 130U);
  EXPECT_EQ(weights.tokens[129], 129);
}

TEST_F(Eagle3FolderTest, IsKeptForAModelToTheBit) {
  const Eagle3Files files = published([](Tensors& tensors, json&) {
    for (auto& [name, tensor] : tensors)
      if (tensor.is_floating_point()) tensor = tensor.to(at::kHalf);
  });
  const fixtures::TempFolder runs;
  const Eagle3Manifest kept = save_eagle3(runs / "eagle3", files, "sha256:model", "from there");
  const Eagle3Manifest manifest = read_eagle3_manifest(runs / "eagle3");
  EXPECT_EQ(manifest.fingerprint, kept.fingerprint);
  EXPECT_EQ(manifest.source, "from there");
  const Eagle3Files again = load_eagle3(runs / "eagle3", "sha256:model");
  EXPECT_EQ(again.dtype, "F16");
  expect_same(eagle3_weights(again, fixtures::eagle3_target_config()),
              eagle3_weights(files, fixtures::eagle3_target_config()));
  const auto refused = [&](const std::string& backbone) {
    return fixtures::error_text(runs, [&] { load_eagle3(runs / "eagle3", backbone); });
  };
  EXPECT_EQ(refused("sha256:other"),
            "<>/eagle3: imported for backbone sha256:model, the model is sha256:other, expected "
            "the same; import the draft that belongs to this model, or decode with that one");
  std::string bytes = read_file(runs / "eagle3/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(runs / "eagle3/model.safetensors", bytes);
  EXPECT_EQ(refused("sha256:model").find("<>/eagle3: its tensors are others than the manifest"), 0U)
      << refused("sha256:model");
  std::filesystem::remove(runs / "eagle3/DONE");
  EXPECT_EQ(refused("sha256:model"),
            "<>/eagle3: no DONE file, expected a folder that medusa import finished; import the "
            "draft again");
  EXPECT_EQ(fixtures::error_text(runs, [&] { read_eagle3_manifest(runs / "none"); })
                .find("<>/none: not found or no draft of ours, expected an EAGLE-3 draft; import"),
            0U);
}

TEST_F(Eagle3FolderTest, WhatDoesNotFitIsRefused) {
  const std::string remedy = "; use a draft as EAGLE publishes it, or another drafter";
  const auto tensor = [&](const char* name, const at::Tensor& by) {
    return refusal([&](Tensors& tensors, json&) {
      tensors.erase(name);
      if (by.defined()) tensors[name] = by;
    });
  };
  EXPECT_EQ(tensor("fc.weight", {}), "<>: has no tensor 'fc.weight', expected it" + remedy);
  EXPECT_EQ(tensor("fc.weight", at::zeros({64, 128})),
            "<>: tensor 'fc.weight' has shape [64, 128], expected [64, 192]" + remedy);
  EXPECT_EQ(tensor("midlayer.self_attn.v_proj.weight", at::zeros({64, 64})),
            "<>: tensor 'midlayer.self_attn.v_proj.weight' has shape [64, 64], expected [64, 128]" +
                remedy);
  EXPECT_EQ(tensor("lm_head.weight", at::zeros({40, 64}, at::kChar)),
            "<>: tensor 'lm_head.weight' is I8, expected F32, F16 or BF16" + remedy);
  EXPECT_EQ(tensor("bias", at::zeros({3})),
            "<>: tensor 'bias' is none of an EAGLE-3 draft's, expected these alone" + remedy);
  EXPECT_EQ(
      tensor("norm.weight", at::full({64}, std::nan(""), at::kFloat)),
      "<>: tensor 'norm.weight' holds a number that is not finite, expected numbers" + remedy);
  EXPECT_EQ(tensor("d2t", {}),
            "<>: has no tensor 'd2t', expected the tokens of its smaller vocabulary" + remedy);
  EXPECT_EQ(tensor("d2t", at::full({40}, 130, at::kLong)),
            "<>: 'd2t' leads row 0 out of the vocabulary, expected tokens below 130" + remedy);
  EXPECT_EQ(tensor("d2t", at::full({40}, int64_t{-9223372036854775807}, at::kLong)),
            "<>: 'd2t' leads row 0 out of the vocabulary, expected tokens below 130" + remedy);
  EXPECT_EQ(tensor("d2t", at::arange(40, at::kLong).neg() + 7),
            "<>: 'd2t' names token 7 twice, expected a token for each row" + remedy);
  EXPECT_EQ(tensor("d2t", at::zeros({40}, at::kLong)),
            "<>: 'd2t' names token 0, which 't2d' does not, expected the same" + remedy);
  EXPECT_EQ(refusal([](Tensors& tensors, json&) {
              tensors["layers.0.mlp.up_proj.weight"] = tensors["midlayer.mlp.up_proj.weight"];
            }),
            "<>: holds 'layers.0.mlp.up_proj.weight' and 'midlayer.mlp.up_proj.weight', which are "
            "names of one tensor, expected one of them" +
                remedy);
  EXPECT_EQ(tensor("t2d", at::zeros({129}, at::kBool)),
            "<>: tensor 't2d' is BOOL [129], expected BOOL [130]" + remedy);
}

TEST_F(Eagle3FolderTest, SettingsThatAreNotRunAreRefused) {
  const std::string remedy = "; use the config.json that came with the model, or another model";
  const auto setting = [&](const char* key, const json& value) {
    return refusal([&](Tensors&, json& config) { config[key] = value; });
  };
  EXPECT_EQ(setting("num_hidden_layers", 2),
            "<>/config.json: 'num_hidden_layers' is 2, expected 1" + remedy);
  EXPECT_EQ(setting("norm_before_residual", true),
            "<>/config.json: 'norm_before_residual' is true, expected false: medusa runs EAGLE's "
            "own layer" +
                remedy);
  EXPECT_EQ(
      setting("draft_vocab_size", 131),
      "<>/config.json: 'draft_vocab_size' is 131, expected 1 to the vocabulary's 130" + remedy);
  EXPECT_EQ(setting("eagle_aux_hidden_state_layer_ids", {1, 3, 3}),
            "<>/config.json: 'eagle_aux_hidden_state_layer_ids' is [1,3,3], expected ascending "
            "layers" +
                remedy);
  ModelConfig other = fixtures::eagle3_target_config();
  other.num_layers = 6;
  EXPECT_EQ(refusal([](Tensors&, json&) {}, other),
            "<>: reads three different layers, the model has 6, expected layers of it "
            "('eagle_aux_hidden_state_layer_ids'); use a draft as EAGLE publishes it, or another "
            "drafter");
  other.vocab_size = 131;
  EXPECT_EQ(refusal([](Tensors&, json&) {}, other),
            "<>: a draft for 130 tokens, the model has 131, expected a draft of this model; take "
            "the one that was published for it");
}

}  // namespace
}  // namespace medusa
