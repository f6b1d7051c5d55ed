// What generate and bench call, with a model that lies on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heads/heads_checkpoint.h"
#include "heads/tree/choice_tree.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "runtime/answer.h"
#include "runtime/drafting.h"
#include "tests/base/temp_folder.h"
#include "tests/device/test_devices.h"
#include "tools/bench/bench.h"
#include "tools/compare/compare.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

const std::filesystem::path kModel = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";

/// A run with untrained heads and a small tree, and its model.
struct DeviceRun {
  explicit DeviceRun(at::Device device) {
    config.run = (folder / "run").string();
    config.backbone.model = kModel.string();
    config.backbone.chat_template = "plain";
    config.backbone.context = 128;
    config.backbone.threads = 1;
    config.generate.infer.max_new_tokens = 16;
    config.backbone.device = DeviceKind::Cpu;
    config.backbone.dtype = DtypeKind::Float32;
    model = open_model(config.backbone);
    model.llama = std::make_unique<Llama>(load_weights(kModel, at::kFloat, device));

    const Weights& backbone = model.llama->weights();
    HeadsManifest manifest;
    manifest.backbone = backbone.fingerprint;
    HeadsConfig heads;
    heads.num_heads = 3;
    heads.output = HeadOutput::Shared;
    save_heads(config.heads_folder(), make_heads(heads, backbone, {}, 1), at::kFloat, manifest);
    ChoiceTree tree = make_choice_tree({{0}, {1}, {0, 0}, {0, 1}, {0, 0, 0}}, 3, "tree");
    tree.heads = manifest.fingerprint;
    write_choice_tree(config.tree_file(), tree, "Made by a test");
  }

  std::vector<TokenId> prompt() const { return model.encode({{"user", "Once upon a time"}}); }

  fixtures::TempFolder folder;
  RunConfig config;
  Model model{};
};

class ModelOnDevice : public fixtures::OnDevice {
 protected:
  static Answer answer_on(at::Device where) {
    const DeviceRun run(where);
    BackboneTarget target(*run.model.llama, 1, run.model.context);
    InferConfig infer = run.config.generate.infer;
    infer.graphs = false;  // logits are wanted
    const LoadedDrafting drafting =
        load_drafting(run.config.draft_files(), infer, run.model, target);
    const auto decoder = make_decoder(infer, drafting.parts(), target);
    return answer(run.model, *decoder, {run.prompt(), 1},
                  {.max_new_tokens = 16, .stop = {}, .logprobs = 2, .show = {}});
  }
};
MEDUSA_ON_EVERY_DEVICE(ModelOnDevice);

TEST_P(ModelOnDevice, AnswersAsOnTheCpu) {
  const Answer found = answer_on(device()), expected = answer_on(at::kCPU);
  EXPECT_EQ(found.text, expected.text);
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.logprobs.size(), 16U);
  for (size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(found.logprobs[i].chosen, expected.logprobs[i].chosen, 1e-4);
}

TEST_P(ModelOnDevice, MethodsAreComparedAndBenched) {
  const DeviceRun run(device());
  BackboneTarget target(*run.model.llama, 1, run.model.context);
  InferConfig infer = run.config.generate.infer;
  infer.drafter = compared_drafter(infer);
  const LoadedDrafting drafting = load_drafting(run.config.draft_files(), infer, run.model, target);
  const Comparison compared = compare(run.config, run.model, target, drafting,
                                      all_methods(run.config.generate.infer), {run.prompt()});
  ASSERT_EQ(compared.methods.size(), 5U);  // plain, Medusa, merged; sampled: plain, typical
  EXPECT_EQ(compared.methods[1].same_text, 1);
  EXPECT_EQ(compared.methods[2].same_text, 1);

  const std::vector<Prompt> questions{{"a", "", {{"user", "Once upon a time"}}, {}},
                                      {"b", "", {{"user", "The dog"}}, {}}};
  BenchPlan plan;
  plan.methods = parse_methods({"none", "medusa", "prompt_lookup"});
  plan.temperatures = {0, 0.8};
  plan.slots = 2;
  const Measurement measured =
      run_bench(run.config, run.model, plan, questions, 1, [](const Measurement&) {});
  EXPECT_TRUE(measured.complete);
  EXPECT_TRUE(measured.failed.empty());
  EXPECT_EQ(measured.samples.size(), 6U);
  EXPECT_NE(machine_text(*run.model.llama).find(device().str()), std::string::npos);
}

TEST_P(ModelOnDevice, EachPromptOfAComparisonHasItsOwnRandomNumbers) {
  DeviceRun run(device());
  run.config.generate.infer.typical = {.epsilon = 0.01, .delta = 0.1};
  BackboneTarget target(*run.model.llama, 1, run.model.context);
  InferConfig infer = run.config.generate.infer;
  infer.drafter = DrafterKind::Medusa;
  const LoadedDrafting drafting = load_drafting(run.config.draft_files(), infer, run.model, target);
  const Comparison compared =
      compare(run.config, run.model, target, drafting,
              {{DrafterKind::None, RuleKind::Match}, {DrafterKind::Medusa, RuleKind::Typical}},
              std::vector(5, run.prompt()));
  const auto& steps = compared.methods.at(1).emitted_per_step;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](int64_t n) { return n % 5 != 0; }))
      << "five times the same prompt took the same steps: " << testing::PrintToString(steps);
}

}  // namespace
}  // namespace medusa
