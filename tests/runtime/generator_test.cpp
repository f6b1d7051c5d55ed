#include "runtime/generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "infer/tree_builder.h"
#include "tests/base/error_text.h"
#include "tests/runtime/short_stories.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kPrompts;
using fixtures::kStoryModel;
using fixtures::Repeat;
using fixtures::short_texts;
using fixtures::story_options;

class GeneratorOfTinyModel : public fixtures::StoryModelTest {};

TEST_F(GeneratorOfTinyModel, OnePromptSeveralAndAConversationGiveTheSameText) {
  Generator generator(model_, short_texts());
  const std::vector<Answer> all = generator.generate(kPrompts);
  ASSERT_EQ(all.size(), kPrompts.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_GT(all[i].tokens.size(), 4U);
    EXPECT_EQ(generator.generate(kPrompts[i]).text, all[i].text);
    EXPECT_EQ(generator.chat({{"user", kPrompts[i]}}).text, all[i].text);
    EXPECT_EQ(generator.answer({{model_.encode({{"user", kPrompts[i]}}), 9}})[0].text, all[i].text);
  }
  EXPECT_NE(all[0].text, all[1].text);
  EXPECT_TRUE(generator.lossless());
  EXPECT_TRUE(generator.generate(std::vector<std::string>{}).empty());
}

TEST_F(GeneratorOfTinyModel, SampledTextIsThatOfItsSeed) {
  GeneratorOptions options = short_texts();
  options.infer.sampling.temperature = 1;
  options.seed = 7;
  const std::string text = Generator(model_, options).generate(kPrompts[0]).text;
  EXPECT_EQ(Generator(model_, options).generate(kPrompts[0]).text, text);
  options.seed = 8;
  EXPECT_NE(Generator(model_, options).generate(kPrompts[0]).text, text);
}

TEST_F(GeneratorOfTinyModel, PiecesAreTheTextAndAnUnwantedOneEndsIt) {
  GeneratorOptions options = short_texts();
  options.sequences = 2;
  Generator generator(model_, options);
  std::vector<std::string> shown(kPrompts.size());
  const auto answers = generator.generate(kPrompts, [&](size_t i, std::string_view piece) {
    shown.at(i) += piece;
    return true;
  });
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(shown[i], answers[i].text);
  int pieces = 0;
  const Answer ended =
      generator.generate(kPrompts[0], [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(pieces, 3);
  EXPECT_STREQ(finish_name(ended), "interrupted");
  EXPECT_LT(ended.text.size(), answers[0].text.size());
  EXPECT_TRUE(answers[0].text.starts_with(ended.text));
}

TEST_F(GeneratorOfTinyModel, TheStepsOfAnAnswerAreItsTextAndItsTokens) {
  for (const DrafterKind drafter : {DrafterKind::None, DrafterKind::PromptLookup}) {
    GeneratorOptions options = short_texts();
    options.infer.drafter = drafter;
    options.infer.max_new_tokens = 60;
    const Answer answer = Generator(model_, options).generate("Lily Lily Lily Lily Lily Lily");
    std::string text;
    size_t tokens = 0;
    int32_t most = 0;
    for (const AnswerStep& step : answer.steps) {
      text += step.text;
      tokens += static_cast<size_t>(step.num_tokens);
      most = std::max(most, step.num_tokens);
    }
    EXPECT_EQ(text, answer.text);
    EXPECT_EQ(tokens, answer.tokens.size());
    EXPECT_EQ(std::ssize(answer.steps), answer.stats.steps);
    EXPECT_EQ(most == 1, drafter == DrafterKind::None) << answer.text;
  }
}

TEST_F(GeneratorOfTinyModel, StopsAtTextsAndKeepsLogprobs) {
  const std::string whole = Generator(model_, short_texts()).generate(kPrompts[0]).text;
  GeneratorOptions options = short_texts();
  options.stop = {whole.substr(8, 5)};
  options.logprobs = 2;
  const Answer answer = Generator(model_, options).generate(kPrompts[0]);
  EXPECT_EQ(answer.text, whole.substr(0, whole.find(options.stop[0])));
  EXPECT_STREQ(finish_name(answer), "stop");
  ASSERT_EQ(answer.logprobs.size(), answer.tokens.size());
  EXPECT_EQ(answer.logprobs[0].largest.at(0).first, answer.tokens[0]);
  EXPECT_EQ(answer.logprobs[0].largest.size(), 2U);
}

TEST_F(GeneratorOfTinyModel, MisuseIsAnErrorInFourPartsAndLeavesTheGeneratorUsable) {
  Generator generator(model_, short_texts());
  const std::string text = generator.generate(kPrompts[0]).text;
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += " and the dog";
  int shown = 0;
  const auto count = [&](size_t, std::string_view) { return ++shown > 0; };
  EXPECT_EQ(error_text([&] {
              generator.generate({kPrompts[0], longer}, count);
            }).find("the prompt has "),
            0U);
  EXPECT_EQ(shown, 0) << "nothing is decoded where one prompt is refused";
  EXPECT_EQ(error_text([&] { generator.generate("caf\xe9"); }),
            "the prompt: is not UTF-8, expected text in it; convert it, or give its tokens");
  EXPECT_EQ(error_text([&] {
              generator.answer({{{1, 1 << 20}, 1}});
            }).find("the prompt holds token 1048576, expected ids from 0 to "),
            0U);
  EXPECT_EQ(error_text([&] {
              generator.answer({{{}, 1}});
            }),
            "the prompt has no tokens, expected at least one; give a text to continue");
  EXPECT_EQ(error_text([&] {
              generator.generate(kPrompts[0], [&](std::string_view) {
                generator.generate(kPrompts[1]);
                return true;
              });
            }),
            "Generator: called while a call of the same model runs on this thread, expected one "
            "after the other; leave the callback first");
  EXPECT_THROW(generator.generate(kPrompts[0],
                                  [](std::string_view) -> bool { throw std::out_of_range("own"); }),
               std::out_of_range);
  EXPECT_EQ(generator.generate(kPrompts[0]).text, text);
}

TEST_F(GeneratorOfTinyModel, OptionsThatCannotWorkAreRefusedBeforeAnythingIsLoaded) {
  const auto refusal = [](const std::function<void(GeneratorOptions&)>& change) {
    GeneratorOptions options = short_texts();
    change(options);
    return error_text([&] { Generator(model_, options); });
  };
  EXPECT_EQ(refusal([](auto& o) { o.infer.max_new_tokens = 0; }),
            "generate.max_new_tokens is 0, expected >= 1; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.infer.sampling.top_p = 1.5; }).find("generate.top_p is 1.5"),
            0U);
  EXPECT_EQ(refusal([](auto& o) {
              o.infer.rule = RuleKind::Match;
            }).find("rule 'match' with temperature 0"),
            0U);
  EXPECT_EQ(refusal([](auto& o) { o.sequences = 0; }).find("generate.sequences is 0"), 0U);
  EXPECT_EQ(refusal([](auto& o) { o.logprobs = -1; }).find("generate.logprobs is -1"), 0U);
  EXPECT_EQ(refusal([](auto& o) { o.stop = {""}; }).find("generate.stop holds an empty text"), 0U);
  EXPECT_EQ(refusal([](auto& o) { o.infer.drafter = DrafterKind::Medusa; }),
            "generate.tree: nothing is named, expected what drafter 'medusa' reads; name it, or "
            "decode with another drafter");
  EXPECT_EQ(refusal([](auto& o) {
              o.infer.drafter = DrafterKind::Medusa;
              o.own_drafter = [] { return nullptr; };
            }).find("generate.drafter is 'medusa' and there is an own drafter"),
            0U);
}

TEST_F(GeneratorOfTinyModel, AnOwnDrafterThatIsNoneIsRefused) {
  GeneratorOptions options = short_texts();
  options.own_drafter = [] { return nullptr; };
  Generator generator(model_, options);
  try {
    generator.generate("Once");
    ADD_FAILURE() << "taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("own_drafter: it returned null"), std::string::npos)
        << error.what();
  }
}

// Two threads over one model, whose passes share their buffers.
TEST_F(GeneratorOfTinyModel, CallsFromSeveralThreadsTakeTurns) {
  Generator one(model_, short_texts()), other(model_, short_texts());
  std::vector<std::string> expected;
  for (const std::string& prompt : kPrompts) expected.push_back(one.generate(prompt).text);
  std::vector<std::string> found(6);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        found[i] = (i % 2 == 0 ? one : other).generate(kPrompts[i % kPrompts.size()]).text;
      });
  }
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i % kPrompts.size()]) << i;
}

TEST_F(GeneratorOfTinyModel, MisuseFromOtherThreadsIsHeardThereAndDisturbsNobody) {
  Generator generator(model_, short_texts());
  const std::string text = generator.generate(kPrompts[0]).text;
  std::vector<std::string> found(8);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        if (i % 4 == 0)
          found[i] = error_text([&] { generator.generate("caf\xe9"); });
        else if (i % 4 == 1)
          found[i] = error_text([&] {
            generator.generate(kPrompts[0], [&](std::string_view) {
              generator.generate(kPrompts[1]);
              return true;
            });
          });
        else
          found[i] = generator.generate(kPrompts[0]).text;
      });
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (i % 4 == 0)
      EXPECT_EQ(found[i].find("the prompt: is not UTF-8"), 0U);
    else if (i % 4 == 1)
      EXPECT_EQ(found[i].find("Generator: called while a call of the same model runs"), 0U);
    else
      EXPECT_EQ(found[i], text) << i;
}

TEST(Generator, WantsALoadedModel) {
  EXPECT_EQ(error_text([] { Generator(Model(), {}); }),
            "Generator: the model is empty, expected a loaded one; call Model::load first");
}

TEST_F(GeneratorOfTinyModel, AnOwnDrafterChangesStepsAndNotTheText) {
  const Answer plain = Generator(model_, short_texts()).generate(kPrompts[0]);
  GeneratorOptions options = short_texts();
  options.own_drafter = [] { return std::make_unique<Repeat>(); };
  const Answer drafted = Generator(model_, options).generate(kPrompts[0]);
  EXPECT_EQ(drafted.text, plain.text);
  EXPECT_EQ(plain.stats.proposed, 0);
  EXPECT_GT(drafted.stats.proposed, 0);
}

class Failing : public Drafter {
 public:
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    if (context.tokens.size() > 12) throw std::out_of_range("own");
    return TreeBuilder(context).take();
  }
};

TEST_F(GeneratorOfTinyModel, AnOwnDrafterThatFailsEndsTheCallAndLeavesRoomForTheNext) {
  GeneratorOptions options = short_texts();
  options.sequences = 2;
  bool fails = true;
  options.own_drafter = [&fails]() -> std::unique_ptr<Drafter> {
    if (fails) return std::make_unique<Failing>();
    return std::make_unique<Repeat>();
  };
  Generator generator(model_, options);
  for (int i = 0; i < 5; ++i) EXPECT_THROW(generator.generate(kPrompts), std::out_of_range);
  fails = false;
  const std::vector<Answer> plain = Generator(model_, short_texts()).generate(kPrompts);
  const std::vector<Answer> found = generator.generate(kPrompts);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].text, plain[i].text);
}

// A pool for one sequence: the second waits for the first, whatever ends it.
TEST(Generator, ACacheForOneSequenceServesAllInTurn) {
  ModelOptions loading = story_options();
  const Model whole = Model::load(kStoryModel, loading);
  loading.cache_mb = static_cast<double>(whole.llama->cache_bytes(loading.context.value())) / 1e6;
  const Model model = Model::load(kStoryModel, loading);
  GeneratorOptions options = short_texts();
  options.sequences = 4;
  Generator generator(model, options);
  const std::vector<Answer> plain = Generator(whole, options).generate(kPrompts);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(
        generator.generate(
            kPrompts, [](size_t, std::string_view) -> bool { throw std::out_of_range("own"); }),
        std::out_of_range);
    const std::vector<Answer> found = generator.generate(kPrompts);
    for (size_t each = 0; each < found.size(); ++each)
      EXPECT_EQ(found[each].text, plain[each].text);
  }
}

}  // namespace
}  // namespace medusa
