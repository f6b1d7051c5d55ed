#include "runtime/calibrator.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "data/dataset/sample_order.h"
#include "runtime/generator.h"
#include "tests/base/error_text.h"
#include "tests/runtime/story_dataset.h"
#include "tests/runtime/story_model.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kStoryModel;
using fixtures::story_options;

/// A model, stories that it is said to have written, and heads of it.
class CalibratedStories : public testing::Test {
 protected:
  CalibratedStories() {
    ModelOptions options = story_options();
    options.progress = [this](const StageProgress& now) {
      if (progress) progress(now);
    };
    model = Model::load(kStoryModel, options);
    fixtures::write_story_dataset(folder / "dataset", model, model.llama->weights().fingerprint);
    heads = fixtures::write_story_heads(folder / "heads", model);
  }

  CalibratorOptions options() const {
    CalibratorOptions out;
    out.heads = folder / "heads";
    out.validation_fraction = 0.5;
    out.config.top_k = 5;
    out.config.nodes = 4;
    out.config.context = 16;
    out.config.repeats = 3;
    return out;
  }

  std::string refusal(const std::function<void(CalibratorOptions&)>& change) const {
    CalibratorOptions changed = options();
    change(changed);
    return error_text([&] { Calibrator(model, changed); });
  }

  fixtures::TempFolder folder;
  ProgressFunction progress;
  Model model;
  std::string heads;  // fingerprint
};

TEST_F(CalibratedStories, TheTreeIsMeasuredOnTheseHeadsAndThisMachine) {
  std::map<std::string, int> ended;
  progress = [&](const StageProgress& now) { ended[now.stage] += now.finished ? 1 : 0; };
  const DatasetReader dataset(folder / "dataset");
  const ChoiceTree tree = Calibrator(model, options()).run(dataset);
  EXPECT_EQ(tree.num_nodes(), 4);
  EXPECT_EQ(tree.heads, heads);
  ASSERT_TRUE(tree.calibration && tree.expected_tokens_per_step);
  EXPECT_EQ(tree.calibration->num_answers,
            std::ssize(split_dataset(Random(1), dataset, 0.5).validation))
      << "those that training with this seed keeps out";
  EXPECT_EQ(tree.calibration->sizes.size(), 4U);
  const std::vector<double>& drafting = tree.calibration->drafting_ms;
  ASSERT_EQ(drafting.size(), 4U);
  EXPECT_LT(drafting[0], drafting[1]) << "a plain step asks no heads";
  for (size_t i = 0; i < 4; ++i) EXPECT_LT(drafting[i], tree.calibration->sizes[i].step_ms);
  EXPECT_EQ(tree.calibration->machine, machine_text(*model.llama));
  EXPECT_GE(tree.expected_tokens_per_step->value, 1);
  EXPECT_EQ(ended, (std::map<std::string, int>{{"count drafts", 1}, {"time steps", 1}}));

  write_choice_tree(folder / "tree.yaml", tree, "Made by a test");
  GeneratorOptions decoding;
  decoding.infer.max_new_tokens = 24;
  const std::string plain = Generator(model, decoding).generate("Once upon a time").text;
  decoding.infer.drafter = DrafterKind::Medusa;
  decoding.files.heads = folder / "heads";
  decoding.files.tree = folder / "tree.yaml";
  EXPECT_EQ(Generator(model, decoding).generate("Once upon a time").text, plain);
}

TEST_F(CalibratedStories, OptionsThatCannotWorkAreRefusedAtOnce) {
  EXPECT_EQ(refusal([](auto&) {}), "(no error)");
  EXPECT_EQ(refusal([](auto& o) { o.config.repeats = 1; }),
            "calibrate.repeats is 1, expected >= 3; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.heads.clear(); }),
            "CalibratorOptions::heads: is empty, expected a path; name one");
  EXPECT_EQ(refusal([](auto& o) { o.validation_fraction = 1.5; }),
            "train.validation_fraction is 1.5, expected from 0 to 0.5; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.infer.sampling.top_p = 2; }).find("generate.top_p is 2"), 0U);
  EXPECT_EQ(error_text([&] { Calibrator(Model(), options()); }),
            "Calibrator: the model is empty, expected a loaded one; call Model::load first");
}

TEST_F(CalibratedStories, WhatDoesNotFitIsRefusedFromAnyThreadAndLeavesTheModelUsable) {
  const Calibrator calibrator(model, options());
  fixtures::write_story_dataset(folder / "strange", model, "sha256:aaaa0000");
  const DatasetReader own(folder / "dataset"), strange(folder / "strange");
  std::string found;
  std::jthread([&] { found = error_text(folder, [&] { calibrator.run(strange); }); }).join();
  EXPECT_EQ(found.find("<>/strange: made with backbone sha256:aaaa0000, the one in "), 0U) << found;
  CalibratorOptions changed = options();
  changed.heads = folder / "none";
  EXPECT_EQ(error_text(folder, [&] { Calibrator(model, changed).run(own); }).find("<>/none: "), 0U);
  changed = options();
  changed.validation_fraction = 0;
  EXPECT_EQ(error_text(folder, [&] { Calibrator(model, changed).run(own); }),
            "<>/dataset: train.validation_fraction is 0, found no validation samples of 6, "
            "expected some; raise it and train anew with --fresh, or distil more text");
  progress = [&](const StageProgress&) { calibrator.run(own); };
  EXPECT_EQ(error_text([&] { calibrator.run(own); }),
            "Calibrator: called while a call of the same model runs on this thread, expected one "
            "after the other; leave the callback first");
  progress = [](const StageProgress&) { throw std::out_of_range("own"); };
  EXPECT_THROW(calibrator.run(own), std::out_of_range);
  progress = {};
  EXPECT_EQ(calibrator.run(own).num_nodes(), 4);
}

}  // namespace
}  // namespace medusa
