// Compares with jinja2 itself: the golden file is made by tools/dev/make_jinja_golden.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "data/chat/jinja/template.h"
#include "tests/data/jinja/json_values.h"

namespace medusa {
namespace {

using fixtures::golden_now;
using fixtures::OrderedJson;
using fixtures::to_variables;

const OrderedJson& golden() {
  static const OrderedJson kGolden =
      OrderedJson::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/jinja_templates.json"));
  return kGolden;
}

const std::filesystem::path kTemplates =
    std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/chat_templates";

/// What every template is given besides the conversation.
const OrderedJson kDefaults = {{"add_generation_prompt", true},
                               {"tools", nullptr},
                               {"documents", nullptr},
                               {"bos_token", "<s>"},
                               {"eos_token", "</s>"}};

struct Outcome {
  std::optional<std::string> text;
  std::string error;
};

Outcome render(const std::string& source, std::initializer_list<const OrderedJson*> variables) {
  try {
    const jinja::Template made(source, "golden");
    jinja::RenderOptions options;
    options.now = golden_now();
    return {made.render([&](jinja::Heap& heap) { return to_variables(variables, heap); }, options),
            ""};
  } catch (const UserError& error) {
    return {std::nullopt, error.what()};
  }
}

TEST(JinjaGolden, RendersEveryTemplateAsJinja2Does) {
  int rendered = 0;
  for (const auto& [name, results] : golden().at("templates").items()) {
    const std::string source = read_file(kTemplates / (name + ".jinja"));
    for (const auto& [conversation, expected] : results.items()) {
      SCOPED_TRACE(name + ": " + conversation);
      const Outcome outcome =
          render(source, {&kDefaults, &golden().at("conversations").at(conversation)});
      if (expected.is_string()) {
        ASSERT_TRUE(outcome.text) << outcome.error;
        EXPECT_EQ(fingerprint_text(*outcome.text).substr(7, 16), expected.get<std::string>())
            << *outcome.text;
        ++rendered;
      } else {
        ASSERT_FALSE(outcome.text) << *outcome.text;
        if (expected.is_object())
          EXPECT_NE(outcome.error.find("refuses the conversation with '" +
                                       expected.at("refused").get<std::string>() + "'"),
                    std::string::npos)
              << outcome.error;
        else
          EXPECT_EQ(outcome.error.find("refuses"), std::string::npos) << outcome.error;
      }
    }
  }
  EXPECT_EQ(rendered, 354);
}

TEST(JinjaGolden, WritesTheWholeTextsOfSome) {
  for (const auto& entry : golden().at("texts")) {
    const std::string source =
        read_file(kTemplates / (entry.at("template").get<std::string>() + ".jinja"));
    const auto& conversation =
        golden().at("conversations").at(entry.at("conversation").get<std::string>());
    EXPECT_EQ(render(source, {&kDefaults, &conversation}).text,
              entry.at("text").get<std::string>());
  }
}

TEST(JinjaGolden, RendersEverySnippetAsJinja2Does) {
  EXPECT_GE(golden().at("snippets").size(), 180U);
  for (const auto& snippet : golden().at("snippets")) {
    const auto source = snippet.at(0).get<std::string>();
    const Outcome outcome = render(source, {&golden().at("values")});
    if (snippet.at(1).is_string())
      EXPECT_EQ(outcome.text.value_or(outcome.error), snippet.at(1).get<std::string>()) << source;
    else
      EXPECT_FALSE(outcome.text) << source << "\ngives " << *outcome.text;
  }
}

}  // namespace
}  // namespace medusa
