#include "runtime/generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "heads/heads_checkpoint.h"
#include "infer/tree_builder.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/runtime/story_model.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kStoryModel;
using fixtures::story_options;

GeneratorOptions short_texts() {
  GeneratorOptions options;
  options.infer.max_new_tokens = 24;
  return options;
}

const std::vector<std::string> kPrompts = {"Once upon a time", "Lily and Tom", "The big dog"};

/// One model for all tests: reading it takes longer than most of them.
class GeneratorOfTinyModel : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = Model::load(kStoryModel, story_options()); }
  static void TearDownTestSuite() { model_ = {}; }
  static inline Model model_{};
};

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

/// Proposes what the last token was: rarely right, and the text stays the model's.
class Repeat : public Drafter {
 public:
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    TreeBuilder tree(context);
    tree.add_path(std::vector<TokenId>(2, context.tokens.back()));
    return std::move(tree).take();
  }
};

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

/// Writes untrained heads and a tree over them into a folder. @returns  the heads' fingerprint.
std::string write_heads_and_tree(const Model& model, const fixtures::TempFolder& folder,
                                 std::optional<TreeCalibration> calibration = {}) {
  HeadsManifest manifest;
  manifest.backbone = model.llama->weights().fingerprint;
  HeadsConfig heads;
  heads.num_heads = 2;
  heads.output = HeadOutput::Shared;
  save_heads(folder / "heads", make_heads(heads, model.llama->weights(), {}, 1), at::kFloat,
             manifest);
  ChoiceTree tree = make_choice_tree({{0}, {1}, {0, 0}}, 3, "tree");
  tree.heads = manifest.fingerprint;
  tree.calibration = std::move(calibration);
  write_choice_tree(folder / "tree.yaml", tree, "Made by a test");
  return manifest.fingerprint;
}

DraftFiles files_in(const fixtures::TempFolder& folder) {
  DraftFiles files;
  files.heads = folder / "heads";
  files.tree = folder / "tree.yaml";
  return files;
}

TEST_F(GeneratorOfTinyModel, HeadsAndTreeDraft) {
  const fixtures::TempFolder folder;
  const std::string heads = write_heads_and_tree(model_, folder);
  GeneratorOptions options = short_texts();
  options.infer.drafter = DrafterKind::Medusa;
  options.files = files_in(folder);
  Generator generator(model_, options);
  const Answer drafted = generator.generate(kPrompts[0]);
  EXPECT_EQ(generator.heads(), heads);
  EXPECT_GT(drafted.stats.proposed, 0);
  EXPECT_EQ(drafted.text, Generator(model_, short_texts()).generate(kPrompts[0]).text);
}

InferConfig decoding(DrafterKind drafter, RuleKind rule, double temperature, int32_t length) {
  InferConfig infer;
  infer.drafter = drafter;
  infer.rule = rule;
  infer.sampling.temperature = temperature;
  infer.max_new_tokens = length;
  return infer;
}

TEST_F(GeneratorOfTinyModel, MixedTextsAreThoseOfEachAlone) {
  const fixtures::TempFolder folder;
  write_heads_and_tree(model_, folder);
  const std::vector<InferConfig> settings = {
      decoding(DrafterKind::None, RuleKind::Auto, 0, 24),
      decoding(DrafterKind::Medusa, RuleKind::Greedy, 0, 17),
      decoding(DrafterKind::PromptLookup, RuleKind::Match, 0.8, 20),
      decoding(DrafterKind::Merge, RuleKind::Match, 1, 30),
      decoding(DrafterKind::Medusa, RuleKind::Rejection, 1, 26),
      decoding(DrafterKind::Medusa, RuleKind::Typical, 0.7, 22),
      decoding(DrafterKind::Lookahead, RuleKind::Auto, 0, 40),
      decoding(DrafterKind::None, RuleKind::Nucleus, 1.2, 19),
  };
  const std::string plain = Generator(model_, short_texts()).generate(kPrompts[0]).text;
  std::vector<AnswerRequest> requests;
  for (size_t i = 0; i < settings.size(); ++i) {
    AnswerRequest& each = requests.emplace_back();
    each.prompt = model_.encode({{"user", kPrompts[i % kPrompts.size()]}});
    each.seed = 3 + i;
    each.infer = settings[i];
    if (settings[i].rule == RuleKind::Nucleus) each.infer->sampling.top_p = 0.9;
  }
  requests[0].stop = {{plain.substr(8, 5)}};

  GeneratorOptions options = short_texts();
  options.files = files_in(folder);
  options.sequences = 4;
  Generator generator(model_, options);
  const std::vector<Answer> found = generator.answer(requests);
  std::set<std::string> texts;
  for (size_t i = 0; i < requests.size(); ++i) {
    GeneratorOptions alone = options;
    alone.sequences = 1;
    alone.infer = *requests[i].infer;
    alone.seed = requests[i].seed;
    alone.stop = requests[i].stop.value_or(std::vector<std::string>{});
    Generator by_itself(model_, alone);
    const Answer expected = by_itself.generate(kPrompts[i % kPrompts.size()]);
    EXPECT_EQ(found[i].tokens, expected.tokens) << i;
    EXPECT_EQ(found[i].text, expected.text) << i;
    EXPECT_EQ(found[i].stats.proposed > 0, expected.stats.proposed > 0) << i;
    EXPECT_LE(std::ssize(found[i].tokens), settings[i].max_new_tokens) << i;
    EXPECT_EQ(generator.answer({requests[i]})[0].text, found[i].text) << i;
    texts.insert(found[i].text);
  }
  EXPECT_EQ(texts.size(), requests.size()) << "each has another text";
  EXPECT_STREQ(finish_name(found[0]), "stop");
  EXPECT_EQ(generator.generate(kPrompts[0]).text, plain) << "others' settings are not kept";
}

TEST_F(GeneratorOfTinyModel, RefusesWhatOneTextCannotHave) {
  Generator generator(model_, short_texts());
  int shown = 0;
  const auto refusal = [&](const std::function<void(AnswerRequest&)>& change) {
    std::vector<AnswerRequest> requests(2);
    for (AnswerRequest& each : requests) each.prompt = model_.encode({{"user", kPrompts[0]}});
    requests[1].infer = decoding(DrafterKind::None, RuleKind::Auto, 0, 9);
    change(requests[1]);
    return error_text(
        [&] { generator.answer(requests, [&](size_t, std::string_view) { return ++shown > 0; }); });
  };
  EXPECT_EQ(
      refusal([](auto& r) { r.infer->rule = RuleKind::Match; }),
      "requests[1]: rule 'match' with temperature 0, expected a temperature above 0; use rule "
      "'greedy' for the most probable text");
  EXPECT_EQ(refusal([](auto& r) { r.infer->max_new_tokens = 0; }),
            "requests[1]: generate.max_new_tokens is 0, expected >= 1; correct it");
  EXPECT_EQ(
      refusal([](auto& r) {
        r.stop = {{"a", ""}};
      }),
      "requests[1]: generate.stop holds an empty text, expected texts of a character or more; "
      "remove it");
  EXPECT_EQ(refusal([](auto& r) { r.infer->drafter = DrafterKind::Medusa; }),
            "requests[1]: generate.tree: nothing is named, expected what drafter 'medusa' reads; "
            "name it, or decode with another drafter");
  EXPECT_EQ(
      refusal([](auto& r) { r.infer->drafter = DrafterKind::Shared; }),
      "requests[1]: generate.drafter is 'shared' with what others were answered (drafter "
      "'shared'), found a generator, which keeps no answers, expected another drafter; choose "
      "one, or leave 'shared' out of generate.merge.drafters");
  EXPECT_EQ(refusal([](auto& r) { r.infer->max_new_tokens = 1 << 20; }), "(no error)")
      << "the context ends it";
  EXPECT_GT(shown, 0);
  shown = 0;
  EXPECT_EQ(refusal([](auto& r) { r.prompt.clear(); }),
            "the prompt has no tokens, expected at least one; give a text to continue");
  EXPECT_EQ(shown, 0) << "nothing is decoded where one text is refused";

  GeneratorOptions own = short_texts();
  own.own_drafter = [] { return std::make_unique<Repeat>(); };
  AnswerRequest lookup{.prompt = {1}, .infer = decoding(DrafterKind::PromptLookup, {}, 0, 9)};
  EXPECT_EQ(
      error_text([&] { Generator(model_, own).answer({lookup}); }),
      "requests[0]: generate.drafter is 'prompt_lookup' and there is an own drafter, expected "
      "one of the two; set it to 'none', or leave the own one out");
  lookup.infer->drafter = DrafterKind::None;
  EXPECT_GT(Generator(model_, own).answer({lookup})[0].stats.proposed, 0) << "the own one drafts";
}

/// Rows cost so much that no draft pays.
TreeCalibration costly_rows(const std::string& machine) {
  TreeCalibration calibration;
  calibration.machine = machine;
  calibration.rows_ms = {1, 9, 17, 25};
  calibration.drafting_ms = {0, 5, 5, 5};
  calibration.sizes = {{1, 1.0, 1}, {2, 1.1, 14}, {3, 1.1, 22}, {4, 1.1, 30}};
  return calibration;
}

TEST_F(GeneratorOfTinyModel, ATreeAdaptsForSeveralSequencesWhereItWasCalibrated) {
  struct Case {
    const char* machine;  // null: this one
    int32_t sequences;
    std::optional<bool> adaptive;
    RuleKind rule;
    bool adapts;
  };
  for (const Case& each :
       {Case{nullptr, 3, {}, RuleKind::Auto, true}, Case{nullptr, 1, {}, RuleKind::Auto, false},
        Case{"another", 3, {}, RuleKind::Auto, false},
        Case{nullptr, 3, false, RuleKind::Auto, false},
        Case{nullptr, 1, true, RuleKind::Auto, true},
        Case{nullptr, 3, {}, RuleKind::Typical, false}}) {
    const fixtures::TempFolder folder;
    write_heads_and_tree(
        model_, folder,
        costly_rows(each.machine != nullptr ? each.machine : machine_text(*model_.llama)));
    GeneratorOptions options = short_texts();
    options.infer.drafter = DrafterKind::Medusa;
    options.infer.rule = each.rule;
    options.infer.medusa.adaptive = each.adaptive;
    options.files = files_in(folder);
    options.sequences = each.sequences;
    const std::vector<Answer> drafted = Generator(model_, options).generate(kPrompts);
    const std::vector<Answer> plain = Generator(model_, short_texts()).generate(kPrompts);
    for (size_t i = 0; i < drafted.size(); ++i) {
      EXPECT_EQ(drafted[i].stats.proposed == 0, each.adapts)
          << each.sequences << " " << drafted[i].stats.proposed;
      if (each.rule == RuleKind::Auto) {
        EXPECT_EQ(drafted[i].text, plain[i].text);
      }
    }
  }
}

}  // namespace
}  // namespace medusa
