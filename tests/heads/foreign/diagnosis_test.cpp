#include "heads/foreign/diagnosis.h"

#include <gtest/gtest.h>

#include <set>

#include "heads/foreign/export_heads.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/foreign/published_heads.h"

namespace medusa {
namespace {

using nlohmann::json;

/// A sound folder, damaged in one way, and what is found then.
class Doctor : public ::testing::Test {
 protected:
  void export_sound(ExportFormat format, HeadOutput output = HeadOutput::Own, int64_t layers = 1) {
    std::filesystem::remove_all(place_);
    const MedusaHeads heads =
        random_heads(heads_config(HeadInput::Hidden, output, layers), backbone_);
    exported_ = export_heads(heads, backbone_, {}, {.format = format, .dtype = at::kHalf}, "heads");
    write_export(place_, exported_, "none.gguf");
  }
  std::vector<HeadFinding> findings() { return diagnose(read_foreign_heads(place_), backbone_); }
  std::set<std::string> failures() {
    std::set<std::string> codes;
    for (const HeadFinding& finding : findings())
      if (finding.severity == Severity::Failure) codes.insert(finding.code);
    return codes;
  }
  void set(const char* key, const json& value) {
    json config = json::parse(read_file(place_ / "config.json"));
    config[key] = value;
    write_config(place_, config);
  }
  void unset(const char* key) {
    json config = json::parse(read_file(place_ / "config.json"));
    config.erase(key);
    write_config(place_, config);
  }
  /// Rewrites the folder's tensors; of two files both.
  void change(const std::function<void(NamedTensors&)>& alter) {
    alter(exported_.tensors);
    const char* name =
        exported_.format == ExportFormat::Vllm ? "model.safetensors" : kHeadsSafetensors;
    write_tensors(place_ / name, exported_.tensors, {});
    if (std::filesystem::exists(place_ / kHeadsPt))
      write_torch_tensors(place_ / kHeadsPt, exported_.tensors);
  }
  using Codes = std::set<std::string>;

  fixtures::TempFolder folder_;
  std::filesystem::path place_ = folder_.path() / "heads";
  Weights backbone_ = tiny_weights(1);
  ExportedHeads exported_;
};

TEST_F(Doctor, FindsNothingThatFailsInSoundFolders) {
  export_sound(ExportFormat::FasterDecoding);
  EXPECT_EQ(failures(), Codes());
  export_sound(ExportFormat::Vllm);
  EXPECT_EQ(failures(), Codes());
  export_sound(ExportFormat::Vllm, HeadOutput::Shared);
  EXPECT_EQ(failures(), Codes());
  export_sound(ExportFormat::Vllm, HeadOutput::TruncatedOwn);
  EXPECT_EQ(failures(), Codes());
}

TEST_F(Doctor, ConfigSaysTwoHeadsWhileMoreAreStored) {
  export_sound(ExportFormat::FasterDecoding);
  set("medusa_num_heads", 2);
  EXPECT_EQ(failures(), Codes{"head_count"});
  set("medusa_num_heads", 5);
  EXPECT_EQ(failures(), Codes{"head_count"});
}

TEST_F(Doctor, TheBiasFlagIsMissing) {
  export_sound(ExportFormat::FasterDecoding);
  unset("medusa_fc_bias");
  ASSERT_EQ(failures(), Codes{"bias_flag"});
  for (const HeadFinding& finding : findings())
    if (finding.code == "bias_flag") {
      EXPECT_EQ(finding.engines, "vLLM");
      EXPECT_TRUE(finding.text.ends_with(
          "heads: config.json does not say \"medusa_fc_bias\": true, expected it beside stored "
          "biases: vLLM leaves them out without a word; add it"))
          << finding.text;
    }
}

TEST_F(Doctor, TheBiasesAreMissing) {
  export_sound(ExportFormat::FasterDecoding);
  change([](NamedTensors& tensors) {
    std::erase_if(tensors, [](const auto& each) { return each.first.ends_with("bias"); });
  });
  EXPECT_EQ(failures(), Codes({"bias_missing"}));
}

TEST_F(Doctor, TheArchitectureIsTheBaseModels) {
  export_sound(ExportFormat::FasterDecoding);
  set("architectures", json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(failures(), Codes{"architectures"});
  set("architectures", json::array({"MedusaModel"}));
  EXPECT_EQ(failures(), Codes{"architectures"}) << "TGI then runs without heads";
}

TEST_F(Doctor, TheVocabularyIsAnother) {
  export_sound(ExportFormat::FasterDecoding);
  ModelConfig other = tiny_config();
  other.vocab_size = 150;
  backbone_ = tiny_weights(1, other);
  EXPECT_EQ(failures(), Codes{"other_vocabulary"});
}

TEST_F(Doctor, TheModelIsOfAnotherSize) {
  export_sound(ExportFormat::FasterDecoding);
  ModelConfig other = tiny_config();
  other.hidden_size = 96;
  backbone_ = tiny_weights(1, other);
  EXPECT_EQ(failures(), Codes{"hidden_size"});
}

TEST_F(Doctor, AllLayersAreOneBlock) {
  export_sound(ExportFormat::Vllm, HeadOutput::Own, 2);
  EXPECT_EQ(failures(), Codes{"layers_collapse"});
  change([](NamedTensors& tensors) {
    for (const char* head : {"0", "1", "2"})
      for (const char* part : {"weight", "bias"}) {
        const std::string prefix = std::string("blocks.") + head + ".layers.";
        tensors[prefix + "1." + part] = tensors[prefix + "0." + part].clone();
      }
  });
  EXPECT_EQ(failures(), Codes());
  Codes warnings;
  for (const HeadFinding& finding : findings()) warnings.insert(finding.code);
  EXPECT_EQ(warnings, Codes{"shared_block"});
}

TEST_F(Doctor, TheOneOutputIsAnotherModelsLmHead) {
  export_sound(ExportFormat::Vllm, HeadOutput::Shared);
  backbone_.lm_head = tiny_weights(2).lm_head;
  EXPECT_EQ(failures(), Codes{"lm_head_mismatch"});
}

TEST_F(Doctor, OutputsAreMissing) {
  export_sound(ExportFormat::TgiV2, HeadOutput::Shared);
  EXPECT_EQ(failures(), Codes{"no_outputs"});
  export_sound(ExportFormat::Vllm, HeadOutput::Shared);
  change([](NamedTensors& tensors) { tensors.erase("lm_head.weight"); });
  EXPECT_EQ(failures(), Codes{"lm_head_missing"});
}

TEST_F(Doctor, TheTokenMapIsPassedOver) {
  export_sound(ExportFormat::Vllm, HeadOutput::TruncatedOwn);
  unset("truncated_vocab_size");
  EXPECT_EQ(failures(), Codes{"token_map_ignored"});
  set("truncated_vocab_size", 50);
  set("vocab_size", 128);
  EXPECT_EQ(failures(), Codes{"other_vocabulary"});
}

TEST_F(Doctor, TwoFilesHoldDifferentHeads) {
  export_sound(ExportFormat::FasterDecoding);
  exported_.tensors["0.0.linear.bias"] = exported_.tensors["0.0.linear.bias"] + 1;
  write_torch_tensors(place_ / kHeadsPt, exported_.tensors);
  EXPECT_EQ(failures(), Codes{"files_differ"});
}

TEST_F(Doctor, SeveralLayoutsLieInOneFolder) {
  export_sound(ExportFormat::FasterDecoding);
  std::filesystem::copy(place_ / kHeadsSafetensors, place_ / "more.safetensors");
  EXPECT_EQ(failures(), Codes{"several_files"});
}

TEST_F(Doctor, TheHeadsWereNeverTrained) {
  export_sound(ExportFormat::FasterDecoding);
  change([](NamedTensors& tensors) {
    for (const char* head : {"0", "1", "2"})
      tensors[std::string(head) + ".0.linear.weight"] = at::zeros({64, 64}, at::kHalf);
  });
  EXPECT_EQ(failures(), Codes{"untrained"});
}

TEST(DoctorTree, SaysWhichHeadsAreNeverUsedAndWhatIsTooDeep) {
  const ChoiceTree tree = make_choice_tree({{0}, {0, 0}}, 1, "tree");
  EXPECT_TRUE(diagnose_tree(tree, 2, "t").empty());
  const auto unused = diagnose_tree(tree, 5, "t");
  ASSERT_EQ(unused.size(), 1U);
  EXPECT_EQ(unused[0].code, "heads_unused");
  EXPECT_EQ(unused[0].severity, Severity::Warning);
  const auto deep = diagnose_tree(tree, 1, "t");
  ASSERT_EQ(deep.size(), 1U);
  EXPECT_EQ(deep[0].code, "tree_too_deep");
  EXPECT_EQ(deep[0].severity, Severity::Failure);
}

}  // namespace
}  // namespace medusa
