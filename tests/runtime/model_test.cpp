#include "runtime/model.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "runtime/generator.h"
#include "runtime/placement.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/runtime/story_model.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kStoryModel;
using fixtures::story_options;

TEST(Model, LoadingAndDecodingChangeNothingOfTheProcessAndPrintNothing) {
  const int threads = at::get_num_threads();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    GeneratorOptions options;
    options.infer.max_new_tokens = 8;
    options.infer.drafter = DrafterKind::PromptLookup;  // which times rows first
    Generator(Model::load(kStoryModel, story_options()), options).generate("Once upon a time");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(at::get_num_threads(), threads);
}

TEST(Model, TellsItsProgressToTheCaller) {
  std::vector<StageProgress> told;
  ModelOptions options = story_options();
  options.progress = [&](const StageProgress& now) { told.push_back(now); };
  Model::load(kStoryModel, options);
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told.back().stage, "load");
  EXPECT_TRUE(told.back().finished);
  EXPECT_EQ(told.back().done, told.back().total);
}

TEST(Model, SaysWhatItDoesOtherwiseThanAsked) {
  std::vector<std::string> notes;
  ModelOptions options = story_options();
  options.note = [&](std::string_view note) { notes.emplace_back(note); };
  options.dtype = DtypeKind::Stored;
  try {
    Model::load(kStoryModel, options);
  } catch (const UserError&) {  // sizes that are no multiple of a block
  }
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].find("note: not all matrices of " + kStoryModel + " are stored in blocks"),
            0U);
}

TEST(Model, ModelsThatAreGivenOneContextShareItsThreads) {
  ModelOptions options = story_options();
  options.threads.reset();
  options.execution = ExecutionContext(ExecutionOptions{.threads = 1});
  const Model one = Model::load(kStoryModel, options), other = Model::load(kStoryModel, options);
  EXPECT_EQ(one.llama->execution().pool(), other.llama->execution().pool());
  EXPECT_EQ(place(options).execution.threads, 1);
}

// Reading the weights of a large model takes minutes.
TEST(Model, WhatTheHeaderShowsIsRefusedBeforeWeightsAreRead) {
  int told = 0;
  ModelOptions options = story_options();
  options.progress = [&](const StageProgress&) { ++told; };
  options.context = 1 << 20;
  const std::string refusal = error_text([&] { Model::load(kStoryModel, options); });
  EXPECT_EQ(refusal.find("backbone.context is 1048576, expected at most the "), 0U) << refusal;
  EXPECT_EQ(told, 0);
  options.context.reset();
  Model::load(kStoryModel, options);
  EXPECT_GT(told, 0);
}

/// Of 64 rows a tree and what is timed before it take all.
TEST(Model, OneOfAVeryShortContextIsRefused) {
  const fixtures::TempFolder folder;
  constexpr std::string_view kKey = "llama.context_length";
  const std::string whole = read_file(kStoryModel);
  const auto loaded = [&](char context) {
    std::string bytes = whole;
    const size_t value = bytes.find(kKey) + kKey.size() + 4;  // behind the number of its type
    bytes.replace(value, 4, std::string{context, 0, 0, 0});
    write_file(folder / "short.gguf", bytes);
    ModelOptions options = story_options();
    options.context.reset();
    return fixtures::error_text(folder, [&] { Model::load(folder / "short.gguf", options); });
  };
  EXPECT_EQ(loaded(127),
            "<>/short.gguf: the model was trained for a context of 127 tokens, expected at least "
            "128, as trees need room; choose another model");
  EXPECT_EQ(loaded(static_cast<char>(128)), "(no error)");
}

TEST(Model, OptionsThatCannotWorkAreRefused) {
  const auto refusal = [](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options = story_options();
    change(options);
    return error_text([&] { Model::load(kStoryModel, options); });
  };
  EXPECT_EQ(refusal([](auto& o) { o.threads = 0; }),
            "backbone.threads is 0, expected >= 1; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.cache_mb = -1; }).find("backbone.cache_mb is -1, expected "),
            0U);
  EXPECT_EQ(refusal([](auto& o) { o.execution.emplace(); }),
            "backbone.threads is given besides an execution context, which has its own, expected "
            "one of the two; leave it out, or make the context with it");
  EXPECT_EQ(refusal([](auto& o) { o.context = 1 << 30; }).find("backbone.context is 1073741824"),
            0U);
  EXPECT_NE(refusal([](auto& o) { o.chat_template = "none"; }), "(no error)");
  EXPECT_NE(error_text([] { Model::load("none.gguf", story_options()); }).find("none.gguf"),
            std::string::npos);
  const fixtures::TempFolder folder;
  std::filesystem::create_directories(folder / "run/dataset");
  EXPECT_EQ(
      fixtures::error_text(folder, [&] { Model::load(folder / "run", story_options()); }),
      "<>/run: is a run's folder, expected a model (a .gguf file, or a folder with config.json "
      "and .safetensors); name the model, and the run with --run <>/run");
}

}  // namespace
}  // namespace medusa
