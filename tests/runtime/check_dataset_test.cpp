#include "runtime/check_dataset.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/dataset/dataset_writer.h"
#include "data/tokenizer/tokenizer.h"
#include "runtime/tuned_model.h"
#include "tests/base/error_text.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// A model folder that was tuned from the model "sha256:aaaa…", and a dataset that it wrote.
class CheckDataset : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(tuned());
    fs::copy_file(fs::path(MEDUSA_SOURCE_DIR) / "tests/golden/tokenizers/bpe.model",
                  tuned() / "tokenizer.model");
    TunedManifest manifest;
    manifest.backbone = kOriginal;
    write_tuned_manifest(tuned(), manifest);
    config_.run = folder_.path().string();
    config_.backbone.model = tuned().string();
    DatasetInfo info;
    info.backbone = kOriginal;
    info.tokenizer = load_tokenizer(tuned())->fingerprint();
    info.vocab_size = 500;
    DatasetWriter(config_.dataset_folder(), info, 1, 16).add(0, {"a", {1, 2, 3}, 1, {}});
  }

  fs::path tuned() const { return folder_.path() / "tuned"; }
  bool own_states(const std::string& backbone) const {
    return check_dataset(DatasetReader(config_.dataset_folder()), tuned(), backbone, model_);
  }

  static constexpr const char* kOriginal = "sha256:aaaa0000";
  static constexpr const char* kTuned = "sha256:bbbb0000";
  /// What is wrong with a dataset that says it is the model's.
  std::string refusal(DatasetInfo info, const Sample& sample) {
    info.backbone = kOriginal;
    info.tokenizer = load_tokenizer(tuned())->fingerprint();
    config_.run = (folder_.path() / "foreign").string();
    DatasetWriter(config_.dataset_folder(), info, 1, 16).add(0, sample);
    return fixtures::error_text(folder_, [&] { own_states(kOriginal); });
  }

  fixtures::TempFolder folder_;
  RunConfig config_;
  ModelConfig model_ = [] {
    ModelConfig model;
    model.vocab_size = 500;
    model.hidden_size = 4;
    model.context = 8;
    return model;
  }();
};

TEST_F(CheckDataset, ATunedModelMayUseTheTextOfTheOneItWasButNotItsStates) {
  EXPECT_FALSE(own_states(kTuned));
  EXPECT_TRUE(own_states(kOriginal));
}

TEST_F(CheckDataset, AModelTunedFromAnotherOneIsRefused) {
  TunedManifest manifest;
  manifest.backbone = "sha256:cccc0000";
  write_tuned_manifest(tuned(), manifest);
  EXPECT_EQ(fixtures::error_text(folder_, [&] { own_states(kTuned); }),
            "<>/dataset: made with backbone sha256:aaaa0000, the one in <>/tuned has "
            "sha256:bbbb0000; distil again or pass the other backbone");
  fs::remove(tuned() / kTunedManifest);
  EXPECT_NE(fixtures::error_text([&] { own_states(kTuned); }), "(no error)");
}

// Its fingerprints are the model's, as anybody can write them; what it holds would end in a failed
// assertion far behind.
TEST_F(CheckDataset, ADatasetThatOnlySaysItIsTheModelsIsRefused) {
  const std::string rest =
      ", expected a dataset that this model wrote; distil again or pass the other backbone";
  DatasetInfo info;
  info.vocab_size = 600;
  EXPECT_EQ(refusal(info, {"a", {1, 599}, 1, {}}),
            "<>/foreign/dataset: its tokens are of a vocabulary of 600, the model in <>/tuned has "
            "500" +
                rest);
  fs::remove_all(config_.dataset_folder());
  info.vocab_size = 500;
  info.hidden_size = 3;
  EXPECT_EQ(
      refusal(info, {"a", {1, 2}, 1, {0, 0, 0}}),
      "<>/foreign/dataset: its hidden states have 3 numbers, the model in <>/tuned has 4" + rest);
  fs::remove_all(config_.dataset_folder());
  info.hidden_size = 0;
  EXPECT_EQ(refusal(info, {"long", {1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, {}}),
            "<>/foreign/dataset: sample 'long' needs a context of 9 tokens, the model in <>/tuned "
            "has 8" +
                rest);
  fs::remove_all(config_.dataset_folder());
  EXPECT_EQ(refusal(info, {"fits", {1, 2, 3, 4, 5, 6, 7, 8}, 1, {}}), "(no error)");
}

TEST_F(CheckDataset, AManifestThatIsDamagedIsTheUsersError) {
  write_file(tuned() / kTunedManifest, "{}");
  const std::string text = fixtures::error_text(folder_, [&] { own_states(kTuned); });
  EXPECT_TRUE(text.starts_with("<>/tuned/tuned.json: is not a tuned model's manifest (")) << text;
  EXPECT_TRUE(text.ends_with("), expected what medusa train wrote; tune the model again")) << text;
}

TEST_F(CheckDataset, OpensTheDatasetsOfTrainDataWithTheirWeights) {
  EXPECT_EQ(open_dataset(config_).sources()[0].folder, config_.dataset_folder());
  DatasetInfo info = DatasetReader(config_.dataset_folder()).info();
  DatasetWriter(folder_.path() / "more", info, 1, 16).add(0, {"b", {3, 2, 1}, 1, {}});
  config_.train.data = {(folder_.path() / "more").string(), config_.dataset_folder().string()};
  EXPECT_EQ(open_dataset(config_).sources()[0].weight, 1);
  config_.train.data_weights = {2, 0.5};
  const DatasetReader dataset = open_dataset(config_);
  ASSERT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.prompt_id(0), "b");
  EXPECT_EQ(dataset.sources()[0].weight, 2);
  EXPECT_EQ(dataset.sources()[1].weight, 0.5);
}

TEST_F(CheckDataset, EachDatasetOfTrainDataHasAWeightOrNone) {
  config_.train.data = {"runs/a/dataset", "runs/b/dataset"};
  config_.train.data_weights = {2};
  EXPECT_EQ(fixtures::error_text(folder_, [&] { config_.train.validate(); }),
            "train.data_weights has 1 number, train.data names 2 datasets, expected a weight for "
            "each; add what is missing, or leave the weights out");
  config_.train.data_weights = {};
  EXPECT_EQ(fixtures::error_text(folder_, [&] { config_.train.validate(); }), "(no error)");
}

}  // namespace
}  // namespace medusa
