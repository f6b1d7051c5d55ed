#include "heads/heads_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "backbone/files/safetensors.h"
#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

HeadsManifest some_manifest(const Weights& backbone) {
  HeadsManifest manifest;
  manifest.backbone = backbone.fingerprint;
  manifest.dataset = "sha256:da7a";
  manifest.step = 426;
  manifest.num_validation = 1000;
  manifest.quality = {{3.5, 0.5, 0.75, 0.875}, {4.25, 0.25, 0.5, 0.625}, {5, 0.125, 0.25, 0.375}};
  manifest.settings = "train:\n  epochs: 2\n";
  return manifest;
}

class HeadsFolder : public ::testing::Test {
 protected:
  void save(const HeadsConfig& config = heads_config(HeadInput::Root, HeadOutput::TruncatedOwn)) {
    saved_ = random_heads(config, backbone_);
    manifest_ = some_manifest(backbone_);
    save_heads(folder_.path() / "heads", saved_, at::kFloat, manifest_);
  }
  std::string error_loading() {
    return fixtures::error_text(folder_, [&] { load_heads(folder_.path() / "heads", backbone_); });
  }
  /// Replaces the tensors of the folder.
  void rewrite(const std::function<void(std::map<std::string, at::Tensor>&)>& change) {
    std::map<std::string, at::Tensor> tensors;
    for (const auto& [name, tensor] : named_parameters(saved_)) tensors[name] = tensor;
    tensors["kept_tokens"] = at::tensor(saved_.kept_tokens, at::kInt);
    change(tensors);
    write_tensors(folder_.path() / "heads/heads.safetensors", tensors, {{"format", "pt"}});
  }

  fixtures::TempFolder folder_;
  Weights backbone_ = tiny_weights(1);
  MedusaHeads saved_;
  HeadsManifest manifest_;
};

TEST_F(HeadsFolder, LoadingGivesWhatWasSaved) {
  for (const HeadsConfig& config : all_configs()) {
    SCOPED_TRACE(describe(config));
    save(config);
    const LoadedHeads loaded = load_heads(folder_.path() / "heads", backbone_);
    EXPECT_EQ(loaded.heads.config, config);
    EXPECT_EQ(loaded.heads.kept_tokens, saved_.kept_tokens);
    const auto before = named_parameters(saved_), after = named_parameters(loaded.heads);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].first, after[i].first);
      EXPECT_TRUE(at::equal(before[i].second, after[i].second)) << before[i].first;
    }
  }
}

TEST_F(HeadsFolder, APrefixLayerIsReadWholeOrNotAtAll) {
  save(heads_config(HeadInput::Prefix, HeadOutput::TruncatedOwn));
  rewrite([](auto& tensors) { tensors.erase("prefix.down"); });
  EXPECT_NE(error_loading().find("'prefix.down'"), std::string::npos) << error_loading();
  save(heads_config(HeadInput::Prefix, HeadOutput::TruncatedOwn));
  rewrite([](auto& tensors) { tensors["prefix.qkv"] = tensors["prefix.qkv"].slice(0, 1).clone(); });
  EXPECT_NE(error_loading().find("'prefix.qkv'"), std::string::npos) << error_loading();
  save(heads_config(HeadInput::Root, HeadOutput::TruncatedOwn));
  rewrite([](auto& tensors) { tensors["prefix.qkv"] = at::zeros({4}); });
  EXPECT_NE(error_loading().find("'prefix.qkv' belongs to no part of these heads"),
            std::string::npos)
      << error_loading();
}

TEST_F(HeadsFolder, ALayerThatBeganAsTheLastOneKeepsItsScale) {
  HeadsConfig config = heads_config(HeadInput::Prefix, HeadOutput::Shared);
  config.start = HeadStart::LastLayer;
  saved_ = untrained_heads(config, backbone_);
  begin_as_last_layer(*saved_.prefix, backbone_.config, backbone_.layers.back(),
                      backbone_.final_norm);
  manifest_ = some_manifest(backbone_);
  save_heads(folder_.path() / "heads", saved_, at::kBFloat16, manifest_);
  const LoadedHeads loaded = load_heads(folder_.path() / "heads", backbone_);
  EXPECT_EQ(loaded.heads.config, config);
  EXPECT_TRUE(at::equal(loaded.heads.prefix->scale, saved_.prefix->scale));
  EXPECT_TRUE(at::equal(loaded.heads.prefix->layer.down,
                        saved_.prefix->layer.down.to(at::kBFloat16).to(at::kFloat)));
}

TEST_F(HeadsFolder, ARankThatNoOutputHasIsNoPartOfTheFingerprint) {
  HeadsConfig config = heads_config(HeadInput::Root, HeadOutput::TruncatedOwn);
  save(config);
  const std::string fingerprint = manifest_.fingerprint;
  config.output_rank = 64;
  save(config);
  EXPECT_EQ(manifest_.fingerprint, fingerprint);
  config.output = HeadOutput::TruncatedLowRank;
  save(config);
  const std::string of_rank_64 = manifest_.fingerprint;
  EXPECT_NE(of_rank_64, fingerprint);
  EXPECT_EQ(load_heads(folder_.path() / "heads", backbone_).manifest.fingerprint, of_rank_64);
}

TEST_F(HeadsFolder, ACorrectionIsReadWholeAndPartOfTheFingerprint) {
  HeadsConfig config = heads_config(HeadInput::Root, HeadOutput::TruncatedOwn);
  save(config);
  const std::string without = manifest_.fingerprint;
  config.correction_rank = 32;
  save(config);
  EXPECT_NE(manifest_.fingerprint, without);
  rewrite([](auto& tensors) { tensors.erase("2.correction"); });
  EXPECT_NE(error_loading().find("'2.correction'"), std::string::npos) << error_loading();
  save(config);
  rewrite([](auto& tensors) { tensors["correction.table"] = at::zeros({50, 32}); });
  EXPECT_NE(error_loading().find("'correction.table'"), std::string::npos) << error_loading();
}

TEST_F(HeadsFolder, HeadsFromBeforeThereWereCorrectionsKeepTheirFingerprint) {
  save();
  const std::filesystem::path file = folder_.path() / "heads/manifest.yaml";
  std::string text = read_file(file);
  const size_t begin = text.find("  correction_rank: 0\n");
  ASSERT_NE(begin, std::string::npos) << text;
  text.erase(begin, text.find('\n', begin) + 1 - begin);
  write_file(file, text);
  EXPECT_EQ(load_heads(folder_.path() / "heads", backbone_).manifest.fingerprint,
            manifest_.fingerprint);
}

TEST_F(HeadsFolder, TheManifestKeepsWhatWasMeasured) {
  save();
  const HeadsManifest read = read_heads_manifest(folder_.path() / "heads");
  EXPECT_EQ(read.fingerprint, manifest_.fingerprint);
  EXPECT_EQ(read.fingerprint.rfind("sha256:", 0), 0U);
  EXPECT_EQ(read.backbone, "tiny:1");
  EXPECT_EQ(read.dataset, "sha256:da7a");
  EXPECT_EQ(read.step, 426);
  EXPECT_EQ(read.num_validation, 1000);
  EXPECT_EQ(read.settings, "train:\n  epochs: 2\n");
  ASSERT_EQ(read.quality.size(), 3U);
  EXPECT_EQ(read.quality[1].loss, 4.25);
  EXPECT_EQ(read.quality[1].top_1, 0.25);
  EXPECT_EQ(read.quality[1].top_5, 0.5);
  EXPECT_EQ(read.quality[1].top_10, 0.625);
}

TEST_F(HeadsFolder, TheFingerprintIsOfTheContent) {
  save();
  const std::string first = manifest_.fingerprint;
  save();
  EXPECT_EQ(manifest_.fingerprint, first);
  saved_.blocks[0].bias[0] = 3;
  save_heads(folder_.path() / "heads", saved_, at::kFloat, manifest_);
  EXPECT_NE(manifest_.fingerprint, first);
}

TEST_F(HeadsFolder, RefusesAFolderThatIsNotThere) {
  EXPECT_EQ(error_loading(),
            "<>/heads: there is no such folder, expected trained heads; run 'medusa train' or pass "
            "another folder");
}

TEST_F(HeadsFolder, RefusesAFolderWithoutDone) {
  save();
  std::filesystem::remove(folder_.path() / "heads/DONE");
  EXPECT_EQ(error_loading(),
            "<>/heads: no DONE file, expected a folder that 'medusa train' finished; run 'medusa "
            "train' again or pass another folder");
}

TEST_F(HeadsFolder, RefusesAnotherBackbone) {
  save();
  backbone_.fingerprint = "tiny:2";
  EXPECT_EQ(
      error_loading(),
      "<>/heads: trained on the backbone tiny:1, the backbone given is tiny:2; pass the other "
      "backbone or train heads for this one");
}

TEST_F(HeadsFolder, RefusesAlteredTensors) {
  save();
  rewrite([](auto& tensors) { tensors["1.layers.0.bias"] = at::ones({64}); });
  const std::string error = error_loading();
  EXPECT_EQ(error.rfind("<>/heads: the heads have the fingerprint sha256:", 0), 0U) << error;
  EXPECT_NE(error.find("; the folder was altered, train again or copy it anew"), std::string::npos);
}

TEST_F(HeadsFolder, RefusesATensorLeftOver) {
  save();
  rewrite([](auto& tensors) { tensors["3.layers.0.bias"] = at::ones({64}); });
  EXPECT_EQ(
      error_loading(),
      "<>/heads/heads.safetensors: tensor '3.layers.0.bias' belongs to no part of these heads, "
      "expected only what manifest.yaml describes; the folder is a mixture, train again");
}

TEST_F(HeadsFolder, RefusesMissingAndMisshapenTensors) {
  save();
  rewrite([](auto& tensors) { tensors.erase("2.output"); });
  EXPECT_NE(error_loading().find("2.output"), std::string::npos) << error_loading();
  rewrite([](auto& tensors) { tensors["2.output"] = at::ones({49, 64}); });
  EXPECT_NE(error_loading().find("2.output"), std::string::npos) << error_loading();
}

TEST_F(HeadsFolder, RefusesKeptTokensOutOfOrder) {
  save();
  rewrite([](auto& tensors) { tensors["kept_tokens"] = tensors["kept_tokens"].flip(0); });
  EXPECT_EQ(
      error_loading(),
      "<>/heads/heads.safetensors: 'kept_tokens' is not an ascending list of tokens below 130, "
      "expected one; the file is damaged, train again");
}

TEST_F(HeadsFolder, RefusesAnotherVersion) {
  save();
  std::string manifest = read_file(folder_.path() / "heads/manifest.yaml");
  manifest.replace(manifest.find("version: 1"), 10, "version: 7");
  write_file(folder_.path() / "heads/manifest.yaml", manifest);
  EXPECT_EQ(error_loading(),
            "<>/heads/manifest.yaml: format 'medusa-heads' version 7, expected 'medusa-heads' "
            "version 1; train the heads again");
}

TEST_F(HeadsFolder, AFailedSaveLeavesTheOldHeads) {
  save();
  MedusaHeads broken = random_heads(saved_.config, backbone_);
  broken.blocks[0].bias = at::Tensor();  // cannot be saved
  EXPECT_ANY_THROW(save_heads(folder_.path() / "heads", broken, at::kFloat, manifest_));
  EXPECT_EQ(error_loading(), "(no error)");
}

}  // namespace
}  // namespace medusa
