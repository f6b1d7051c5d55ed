// Everything in configs/ can be read, and says what it costs.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/file.h"
#include "base/yaml_fields.h"
#include "data/prompts.h"
#include "heads/tree/choice_tree.h"
#include "tools/run/run_config.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = fs::path(MEDUSA_SOURCE_DIR) / "configs";

std::vector<fs::path> files_in(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) out.push_back(entry.path());
  return out;
}

RunConfig read_run(const fs::path& file) { return read_config<RunConfig>(YamlFile(file)); }

TEST(Configs, EveryRunReadsAndOpensWithItsCostAndWhatToExpect) {
  const auto files = files_in(kConfigs, ".yaml");
  EXPECT_GE(files.size(), 6U);
  std::set<std::string> runs;
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const RunConfig config = read_run(file);
    EXPECT_TRUE(runs.insert(config.run).second) << "two runs share a folder";
    // Read again as it would be written, it is the same.
    EXPECT_EQ(write_config(config).substr(0, 5), "run: ");
    const std::string text = read_file(file);
    EXPECT_TRUE(text.starts_with("# "));
    const std::string header = text.substr(0, text.find("\nrun: "));
    EXPECT_NE(header.find("\n# Cost: "), std::string::npos);
    EXPECT_NE(header.find("\n# Expect: "), std::string::npos);
    if (file.filename().string().find("medusa") != std::string::npos) {
      EXPECT_NE(header.find("\n# Source: arXiv:2401.10774 "), std::string::npos);
    }
  }
}

TEST(Configs, ThePapersRecipesHaveThePapersNumbers) {
  const TrainSection one = read_run(kConfigs / "vicuna-7b-medusa1.yaml").train;
  EXPECT_EQ(one.heads.num_heads, 5);
  EXPECT_EQ(one.heads.input, HeadInput::Hidden);
  EXPECT_EQ(one.heads.output, HeadOutput::Own);
  EXPECT_EQ(one.config.lambda_decay, 0.8);
  EXPECT_EQ(one.config.optimizer.learning_rate, 2e-3);
  EXPECT_EQ(one.config.optimizer.warmup_steps, 40);
  const TrainSection two = read_run(kConfigs / "vicuna-7b-medusa2.yaml").train;
  EXPECT_EQ(two.stages, (std::vector{StageKind::Heads, StageKind::Joint}));
  EXPECT_EQ(two.joint.heads_weight, 0.2);
  EXPECT_EQ(two.joint.ramp, Ramp::Constant);
  EXPECT_EQ(two.joint.backbone_loss, BackboneLoss::Text);
  EXPECT_EQ(two.joint.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(two.joint.head_rate_multiple, 4);
  const TrainSection self = read_run(kConfigs / "zephyr-7b-medusa2-self-distilled.yaml").train;
  EXPECT_EQ(self.stages, std::vector{StageKind::Joint});
  EXPECT_EQ(self.joint.heads_weight, 0.01);
  EXPECT_EQ(self.joint.ramp, Ramp::Sine);
  EXPECT_EQ(self.joint.backbone_loss, BackboneLoss::Distill);
  EXPECT_EQ(self.joint.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(self.joint.optimizer.warmup_steps, 20);
}

TEST(Configs, EveryTreeAndEveryFileOfQuestionsReads) {
  for (const fs::path& file : files_in(kConfigs / "trees", ".yaml")) {
    SCOPED_TRACE(file);
    EXPECT_GT(read_choice_tree(file).num_nodes(), 1);
  }
  for (const fs::path& file : files_in(kConfigs, ".jsonl")) {
    SCOPED_TRACE(file);
    const PromptSet set = read_prompts(file);
    EXPECT_FALSE(set.prompts.empty());
    EXPECT_EQ(set.skipped, 0);
  }
}

}  // namespace
}  // namespace medusa
