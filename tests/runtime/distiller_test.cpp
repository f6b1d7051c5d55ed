#include "runtime/distiller.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "data/dataset/dataset_reader.h"
#include "runtime/generator.h"
#include "runtime/question_lines.h"
#include "tests/base/error_text.h"
#include "tests/runtime/story_model.h"
#include "train/samples/hidden_source.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kStoryModel;
using fixtures::story_options;

class DistilledStories : public testing::Test {
 protected:
  DistilledStories() {
    ModelOptions options = story_options();
    options.progress = [this](const StageProgress& now) {
      if (progress) progress(now);
    };
    model = Model::load(kStoryModel, options);
    for (const char* start : {"Once upon a time", "Lily and Tom", "The big dog", "At night"})
      prompts.push_back({start, "", {{"user", start}}, {}});
  }

  DistillerOptions options(const std::string& name = "dataset") const {
    DistillerOptions out;
    out.config.sampling.temperature = 0;
    out.config.max_new_tokens = 12;
    out.config.batch = 2;
    out.config.shard_samples = 1;
    out.dataset = folder / name;
    out.questions = folder / "questions.jsonl";
    return out;
  }

  fixtures::TempFolder folder;
  ProgressFunction progress;
  Model model;
  std::vector<Prompt> prompts;
};

TEST_F(DistilledStories, AnswersAreThoseOfPlainDecoding) {
  const DistillReport report = Distiller(model, options()).run(prompts);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.answered, 4);
  const DatasetReader dataset(folder / "dataset");
  EXPECT_EQ(dataset.info().backbone, model.llama->weights().fingerprint);
  EXPECT_TRUE(dataset.has_hidden());
  GeneratorOptions decoding;
  decoding.infer.max_new_tokens = 12;
  Generator generator(model, decoding);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto answer = dataset.answer(i);
    EXPECT_EQ(std::vector<TokenId>(answer.begin(), answer.end()),
              generator.generate(dataset.prompt_id(i)).tokens);
  }
  EXPECT_EQ(Distiller(model, options()).run(prompts).generated, 0) << "a finished one is kept";
}

TEST_F(DistilledStories, ARunThatAFunctionBrokeEndsAsAnUnbrokenOne) {
  Distiller(model, options("unbroken")).run(prompts);
  Distiller distiller(model, options("broken"));
  progress = [](const StageProgress& now) {
    if (now.stage == "distill") throw std::out_of_range("own");
  };
  EXPECT_THROW(distiller.run(prompts), std::out_of_range);
  progress = {};
  const DistillReport report = distiller.run(prompts);
  EXPECT_TRUE(report.complete);
  EXPECT_LT(report.generated, report.answer_tokens) << "sealed shards were kept";
  for (const auto& entry : std::filesystem::directory_iterator(folder / "unbroken"))
    EXPECT_EQ(read_file(entry.path()), read_file(folder / "broken" / entry.path().filename()));
}

TEST_F(DistilledStories, OnlyWhatIsCompleteGoesOnWithAnotherDtypeOrContext) {
  Distiller(model, options()).run(prompts);
  ModelOptions changed = story_options();
  changed.context = 100;
  const Model shorter = Model::load(kStoryModel, changed);
  EXPECT_EQ(Distiller(shorter, options()).run(prompts).generated, 0);
  std::filesystem::remove(folder / "dataset/shard-00002.h5");
  const std::string refused =
      error_text(folder, [&] { Distiller(shorter, options()).run(prompts); });
  EXPECT_EQ(refused,
            "<>/dataset: made with backbone.dtype: bfloat16, backbone.context: 128, this run has "
            "backbone.dtype: bfloat16, backbone.context: 100, expected the same until it is "
            "complete; set them back to continue, or start anew with --fresh");
  changed = story_options();
  changed.dtype = DtypeKind::Float32;
  EXPECT_NE(
      error_text(folder,
                 [&] { Distiller(Model::load(kStoryModel, changed), options()).run(prompts); })
          .find("this run has backbone.dtype: float32, "),
      std::string::npos);
  EXPECT_GT(Distiller(model, options()).run(prompts).generated, 0);
}

TEST_F(DistilledStories, ANewRunThatIsRefusedLeavesTheOldOne) {
  Distiller(model, options()).run(prompts);
  DistillerOptions asked = options();
  asked.fresh = true;
  int removals = 0;
  asked.before_removal = [&] {
    ++removals;
    EXPECT_EQ(DatasetReader(folder / "dataset").size(), 4) << "it is still there";
  };
  std::string long_words;
  for (int i = 0; i < 2000; ++i) long_words += "once ";
  const std::vector<Prompt> long_prompts{{"long", "", {{"user", long_words}}, {}}};
  EXPECT_NE(
      error_text([&] { Distiller(model, asked).run(long_prompts); }).find("none of 1 prompts"),
      std::string::npos);
  EXPECT_EQ(DatasetReader(folder / "dataset").size(), 4);
  EXPECT_EQ(removals, 0);
  EXPECT_GT(Distiller(model, asked).run({prompts.data(), 2}).generated, 0);
  EXPECT_EQ(DatasetReader(folder / "dataset").size(), 2);
  EXPECT_EQ(removals, 1);
}

TEST_F(DistilledStories, PartsAreTheWhole) {
  Distiller(model, options("whole")).run(prompts);
  for (const int64_t index : {0, 1}) {
    DistillerOptions asked = options("parts");
    asked.dataset = folder / ("part" + std::to_string(index));
    asked.part = {index, 2};
    Distiller(model, asked).run(prompts);
  }
  int64_t shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "whole")) {
    const auto name = entry.path().filename();
    const auto part = std::filesystem::exists(folder / "part0" / name) ? "part0" : "part1";
    EXPECT_TRUE(std::filesystem::exists(folder / part / name)) << name;
    ++shards;
  }
  EXPECT_EQ(shards, 4);
}

TEST_F(DistilledStories, TextsThatAreReadKeepTheStatesOfAPass) {
  const std::vector<WrittenText> texts{
      {"tale", "Once upon a time there was a little bird. It saw a big dog and a small cat.", {}},
      {"two", "Lily and Tom play.", {}}};
  DistillerOptions asked = options("read");
  asked.config.text_tokens = 9;
  asked.config.shard_samples = 2;
  const DistillReport report = Distiller(model, asked).read(texts);
  EXPECT_TRUE(report.complete);
  const DatasetReader dataset(folder / "read");
  EXPECT_TRUE(dataset.has_hidden());
  EXPECT_EQ(report.answered, dataset.size());
  ASSERT_GE(dataset.size(), 3);
  EXPECT_EQ(dataset.prompt_id(0), "tale#0");
  EXPECT_EQ(dataset.prompt_id(dataset.size() - 1), "two#0");
  EXPECT_EQ(model.tokenizer->decode(dataset.answer(dataset.size() - 1)), " Lily and Tom play.");
  const HiddenSource recorded = offline_hidden(dataset),
                     live = online_hidden(dataset, *model.llama);
  for (int64_t i = 0; i < dataset.size(); ++i)
    EXPECT_TRUE(recorded(i).equal(live(i))) << dataset.prompt_id(i);
  EXPECT_EQ(Distiller(model, asked).read(texts).generated, 0) << "a finished one is kept";
  EXPECT_NE(error_text([&] {
              Distiller(model, asked).read({texts.data(), 1});
            }).find("made with"),
            std::string::npos);
}

TEST_F(DistilledStories, WhatTheModelWroteHasTheSameStatesWhenItIsRead) {
  Distiller(model, options()).run(prompts);
  const DatasetReader dataset(folder / "dataset");
  const HiddenSource decoded = offline_hidden(dataset);
  BackboneTarget target = model.open_target(1, 128);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto tokens = dataset.tokens(i);
    const at::Tensor states = target.states(tokens.first(tokens.size() - 1));
    EXPECT_TRUE(states.slice(0, dataset.answer_start(i) - 1).equal(decoded(i)));
  }
}

TEST_F(DistilledStories, AReadingThatAFunctionBrokeEndsAsAnUnbrokenOne) {
  const std::vector<WrittenText> texts{
      {"tale", "Once upon a time there was a little bird. It saw a big dog and a small cat.", {}}};
  const auto asked = [this](const std::string& name) {
    DistillerOptions out = options(name);
    out.config.text_tokens = 6;
    out.config.states_budget_mb = .002;
    return out;
  };
  Distiller(model, asked("unbroken")).read(texts);
  Distiller distiller(model, asked("broken"));
  progress = [](const StageProgress& now) {
    if (now.stage == "distill") throw std::out_of_range("own");
  };
  EXPECT_THROW(distiller.read(texts), std::out_of_range);
  progress = {};
  const DistillReport report = distiller.read(texts);
  EXPECT_LT(report.generated, report.answer_tokens) << "sealed shards were kept";
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "unbroken")) {
    EXPECT_EQ(read_file(entry.path()), read_file(folder / "broken" / entry.path().filename()));
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST_F(DistilledStories, TextsThatTeachNothingAreRefused) {
  const auto refusal = [this](const WrittenText& text) {
    return error_text([&] { Distiller(model, options("read")).read({&text, 1}); });
  };
  EXPECT_EQ(
      refusal({"chat", {}, {{"user", "Lily"}, {"assistant", " "}}})
          .find("distill --prefill: none of 1 texts can be learnt from (1 answers empty, 0 not"),
      0U);
  DistillerOptions part = options("read");
  part.part = {0, 2};
  EXPECT_EQ(error_text([&] {
              Distiller(model, part).read({});
            }).find("distill --prefill: found --shard 0/2"),
            0U);
  EXPECT_FALSE(std::filesystem::exists(folder / "read"));
}

TEST_F(DistilledStories, OnlyConversationsNeedAChatTemplate) {
  Model bare = model;
  bare.chat = {};
  const auto refusal = [&](const WrittenText& text) {
    return error_text([&] { Distiller(bare, options("bare")).read({&text, 1}); });
  };
  EXPECT_EQ(refusal({"tale", "Once upon a time there was a little bird.", {}}), "(no error)");
  const std::string advice =
      ": found a conversation and a model loaded without a chat template, expected one; load it "
      "with ModelOptions::needs_chat_template";
  EXPECT_EQ(refusal({"chat", {}, {{"user", "Lily"}, {"assistant", "Tom"}}}), "Distiller" + advice);
  EXPECT_EQ(error_text([&] { bare.encode({{"user", "Lily"}}); }), "Model::encode" + advice);
}

TEST_F(DistilledStories, SelfWrittenQuestionsAreThoseOfTheFile) {
  write_file(folder / "questions.jsonl", "{\"id\": \"self/0\", \"text\": \"Who are you?\"}\n");
  const PromptSet set = Distiller(model, options()).self_prompts();
  ASSERT_EQ(set.prompts.size(), 1U);
  EXPECT_EQ(set.prompts[0].id, "self/0");
}

/// Of a file that the program has written before with other settings.
TEST_F(DistilledStories, SelfWrittenQuestionsOfOtherSettingsAreWrittenAnewIfThatIsAsked) {
  const std::filesystem::path file = folder / "questions.jsonl";
  DistillerOptions asked = options();
  std::string noted;
  asked.note = [&](std::string_view text) { noted += text; };
  const auto asks = [&] { return error_text([&] { Distiller(model, asked).self_prompts(); }); };
  asked.config.self_prompts = 2;
  asked.config.question_tokens = 8;
  const std::string written = question_lines({"Who are you?"}, "self_prompts 1, seed 1");
  write_file(file, written);
  EXPECT_NE(asks().find("the questions were written with self_prompts 1, seed 1, this run has "
                        "self_prompts 2, question_tokens 8, "),
            std::string::npos);
  asked.fresh = true;
  EXPECT_NE(asks().find("the model finished none of 2 questions"), std::string::npos)
      << "they are written";
  EXPECT_TRUE(std::filesystem::exists(file)) << "until there are others";
  EXPECT_EQ(noted.find("somebody's own"), std::string::npos);
  for (const std::string& own :
       {std::string("{\"text\": \"Who are you?\"}\n"), written + "{\"text\": \"Who is he?\"}\n"}) {
    write_file(file, own);
    noted.clear();
    EXPECT_EQ(asks(), "(no error)");
    EXPECT_NE(noted.find("which are somebody's own"), std::string::npos) << noted;
    EXPECT_EQ(read_file(file), own);
  }
}

// The tiny model knows no turns.
TEST_F(DistilledStories, AModelThatFinishesNoQuestionIsRefused) {
  DistillerOptions asked = options();
  asked.config.self_prompts = 2;
  asked.config.question_tokens = 8;
  EXPECT_EQ(error_text([&] {
              Distiller(model, asked).self_prompts();
            }).find("distill: the model finished none of 2 questions, expected most of them"),
            0U);
  EXPECT_FALSE(std::filesystem::exists(asked.questions));
}

TEST_F(DistilledStories, OptionsThatCannotWorkAreRefusedAtOnce) {
  const auto refusal = [this](const std::function<void(DistillerOptions&)>& change) {
    DistillerOptions changed = options();
    change(changed);
    return error_text([&] { Distiller distiller(model, changed); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "(no error)");
  EXPECT_EQ(refusal([](auto& o) { o.config.batch = 0; }),
            "distill.batch is 0, expected from 1 to 1024; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.dataset.clear(); }),
            "DistillerOptions::dataset: is empty, expected a path; name one");
  EXPECT_EQ(refusal([](auto& o) {
              o.part = {2, 2};
            }),
            "DistillerOptions::part is 2/2, expected an index from 0 to count - 1; give each part "
            "its own");
  EXPECT_EQ(refusal([](auto& o) {
              o.part = {0, 2};
              o.config.max_answer_tokens = 9;
            }).find("distill.max_answer_tokens is 9 with --shard"),
            0U);
  EXPECT_EQ(error_text([&] { Distiller distiller(Model(), options()); }),
            "Distiller: the model is empty, expected a loaded one; call Model::load first");
}

TEST_F(DistilledStories, MisuseFromAnyThreadIsRefusedAndLeavesTheDistillerUsable) {
  Distiller distiller(model, options());
  std::string found;
  std::jthread([&] { found = error_text([&] { distiller.run({}); }); }).join();
  EXPECT_EQ(found,
            "distill: was given no prompts, expected one or more; give some, or let the model ask "
            "itself");
  const std::vector<Prompt> latin = {{"a", "", {{"user", "caf\xe9"}}, {}}};
  EXPECT_EQ(error_text([&] { distiller.run(latin); }),
            "the prompt: is not UTF-8, expected text in it; convert it, or give its tokens");
  EXPECT_FALSE(std::filesystem::exists(folder / "dataset"));
  progress = [&](const StageProgress&) { distiller.run(prompts); };
  EXPECT_EQ(error_text([&] { distiller.run(prompts); }),
            "Distiller: called while a call of the same model runs on this thread, expected one "
            "after the other; leave the callback first");
  progress = {};
  EXPECT_TRUE(distiller.run(prompts).complete);
  prompts.pop_back();
  EXPECT_EQ(error_text(folder, [&] { distiller.run(prompts); }).find("<>/dataset"), 0U)
      << "the folder holds answers to other prompts";
}

}  // namespace
}  // namespace medusa
