// Short texts of the tiny model, for tests of the generator.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "infer/tree_builder.h"
#include "runtime/generator.h"
#include "tests/runtime/story_model.h"

namespace medusa::fixtures {

inline const std::vector<std::string> kPrompts = {"Once upon a time", "Lily and Tom",
                                                  "The big dog"};

inline GeneratorOptions short_texts() {
  GeneratorOptions options;
  options.infer.max_new_tokens = 24;
  return options;
}

/// One model for all tests of a suite: reading it takes longer than most of them.
class StoryModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = Model::load(kStoryModel, story_options()); }
  static void TearDownTestSuite() { model_ = {}; }
  static inline Model model_{};
};

/// Proposes what the last token was: rarely right, and the text stays the model's.
class Repeat : public Drafter {
 public:
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    TreeBuilder tree(context);
    tree.add_path(std::vector<TokenId>(2, context.tokens.back()));
    return std::move(tree).take();
  }
};

}  // namespace medusa::fixtures
