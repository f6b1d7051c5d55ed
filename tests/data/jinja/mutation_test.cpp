// Damaged templates: whatever they say, the engine ends soon, with text or with a UserError.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "data/chat/jinja/template.h"
#include "tests/data/jinja/json_values.h"

namespace medusa {
namespace {

using fixtures::OrderedJson;

constexpr int kMutations = 20'000;

/// Sources to damage: whole templates, and the pieces of the golden file.
std::vector<std::string> seeds(const OrderedJson& golden) {
  std::vector<std::string> out;
  const std::filesystem::path folder = MEDUSA_SOURCE_DIR "/tests/golden/chat_templates";
  for (const auto& [name, _] : golden.at("templates").items())
    out.push_back(read_file(folder / (name + ".jinja")));
  for (const auto& snippet : golden.at("snippets")) out.push_back(snippet.at(0).get<std::string>());
  return out;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (size_t i = 1 + below(4); i > 0; --i) mutate(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::string piece_of(const std::string& text) {
    const size_t at = below(text.size());
    return text.substr(at, below(40));
  }

  void mutate(std::string& text) {
    static const std::string kParts[] = {"{{",
                                         "}}",
                                         "{%",
                                         "%}",
                                         "{%-",
                                         "-%}",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "'",
                                         "\"",
                                         "|",
                                         " is ",
                                         " in ",
                                         "loop",
                                         " not ",
                                         "messages",
                                         "**",
                                         "*",
                                         " 99999",
                                         "//",
                                         ".",
                                         "%",
                                         ":",
                                         "{% endif %}",
                                         "{% endfor %}",
                                         "|list",
                                         "|tojson",
                                         "|map",
                                         "range(9)",
                                         "\\u12",
                                         "\xC3",
                                         "\xF0\x9F",
                                         std::string(1, '\0'),
                                         "~"};
    const size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        text.erase(at, below(30));
        break;
      case 1:
        text.insert(at, kParts[below(std::size(kParts))]);
        break;
      case 2:
        text.insert(at, piece_of(seeds_[below(seeds_.size())]));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 4:
        text.insert(at, piece_of(text));
        break;
      default:
        text.resize(at);
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937 random_{20};
};

TEST(JinjaMutations, EndInTextOrInAUserError) {
  const auto golden =
      OrderedJson::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/jinja_templates.json"));
  const std::vector<std::string> sources = seeds(golden);
  std::vector<const OrderedJson*> conversations;
  for (const auto& [_, conversation] : golden.at("conversations").items())
    conversations.push_back(&conversation);
  const OrderedJson defaults = {{"add_generation_prompt", true}, {"bos_token", "<s>"}};
  jinja::RenderOptions options;
  options.limits.max_steps = 100'000;
  options.limits.max_bytes = 4 << 20;
  options.now = std::tm{};
  options.now->tm_mday = 1;

  Mutator mutator(sources);
  int rendered = 0;
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string source = mutator.next();
    const OrderedJson* conversation = conversations[static_cast<size_t>(i) % conversations.size()];
    try {
      jinja::Template(source, "mutation")
          .render(
              [&](jinja::Heap& heap) {
                return fixtures::to_variables({&golden.at("values"), &defaults, conversation},
                                              heap);
              },
              options);
      ++rendered;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(rendered, kMutations / 20);
  EXPECT_GT(refused, kMutations / 20);
}

}  // namespace
}  // namespace medusa
