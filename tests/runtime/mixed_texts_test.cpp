// Texts that are decoded together, each with settings of its own; and heads with a tree.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "heads/heads_checkpoint.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/runtime/short_stories.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kPrompts;
using fixtures::Repeat;
using fixtures::short_texts;

class MixedTexts : public fixtures::StoryModelTest {};

/// What was timed on a machine: a row beyond the first costs so much of a step, drafting as much.
TreeCalibration timed(const std::string& machine, double per_row) {
  TreeCalibration calibration;
  calibration.machine = machine;
  for (int n = 0; n < 4; ++n) {
    calibration.rows_ms.push_back(1 + n * per_row);
    calibration.drafting_ms.push_back(n == 0 ? 0 : per_row);
    calibration.sizes.push_back({n + 1, 1 + 0.1 * n, 1 + n * per_row});
  }
  return calibration;
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

TEST_F(MixedTexts, HeadsAndTreeDraft) {
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

TEST_F(MixedTexts, MixedTextsAreThoseOfEachAlone) {
  const fixtures::TempFolder folder;
  write_heads_and_tree(model_, folder, timed(machine_text(*model_.llama), 0.02));
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
    EXPECT_EQ(found[i].stats.proposed > 0, settings[i].drafter != DrafterKind::None) << i;
    EXPECT_LE(std::ssize(found[i].tokens), settings[i].max_new_tokens) << i;
    EXPECT_EQ(generator.answer({requests[i]})[0].text, found[i].text) << i;
    texts.insert(found[i].text);
  }
  EXPECT_EQ(texts.size(), requests.size()) << "each has another text";
  EXPECT_STREQ(finish_name(found[0]), "stop");
  EXPECT_EQ(generator.generate(kPrompts[0]).text, plain) << "others' settings are not kept";
}

TEST_F(MixedTexts, RefusesWhatOneTextCannotHave) {
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

TEST_F(MixedTexts, ATreeAdaptsForSeveralSequencesWhereItWasCalibrated) {
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
        timed(each.machine != nullptr ? each.machine : machine_text(*model_.llama), 8));
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
