// Text files that people write or edit: prompts and choice trees.
#include "data/prompts.h"
#include "heads/tree/choice_tree.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_words.h"

namespace medusa::fuzz {
namespace {

constexpr const char* kPrompts =
    R"({"id": "a/1", "category": "qa", "prompt": "What is it?"}
{"text": "One"}

{"turns": ["First", "Then"], "system": "Be short."}
{"instruction": "Add", "input": "1 2"}
{"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}
)";
constexpr const char* kMessages =
    R"({"messages": [{"role": "user", "content": "x\n\u00e9"}]}
{"conversations": [{"from": "human", "value": "h"}, {"from": "gpt", "value": "g"}]}
[{"role": "user", "content": "a list"}]
)";

void run_prompts(const std::string& path) {
  const PromptSet read = read_prompts(path);
  for (const Prompt& prompt : read)
    for (const ChatMessage& message : prompt.messages)
      touch({reinterpret_cast<const uint8_t*>(message.content.data()), message.content.size()});
}

constexpr const char* kImportedTree = R"(format: medusa-choice-tree
version: 1
source: "a paper"
top_k: 3
nodes:
  - [0]
  - [1]
  - [0, 2]
  - [0, 2, 1]
)";
constexpr const char* kCalibratedTree = R"(format: medusa-choice-tree
version: 1
heads: sha256:9adbc239ef50cecbdbadce5ebd3253ef07a93a8ae2343660dbf76196e68f710f
drafter: merge
top_k: 2
expected_tokens_per_step: 1.6
expected_tokens_per_step_95: [1.5, 1.7]
temperatures: [1.1, .9]
nodes:
  - [0]
  - [0, 1]
calibration:
  machine: "some CPU"
  context: 256
  num_positions: 100
  num_answers: 4
  head_accuracy:
    - [.5, .1]
    - [.2, .1]
  num_nodes: [1, 2, 3]
  tokens_per_step: [1, 1.5, 1.6]
  step_ms: [7, 7.5, 8]
  rows_ms: [7, 7.4, 7.8]
  drafting_ms: [0, .3, .3]
  drafters: [none, medusa, merge]
  speedups: [1, 1.5, 1.9]
  speedups_95: [[1, 1], [1.4, 1.6], [1.8, 2.1]]
  paths:
    - [0]
    - [0, 1]
  counts: [50, 10]
)";

/// A key whose "; " was taken for what to do, which was then left out of the message.
std::string key_with_a_remedy() {
  return "format: medusa-choice-tree\nversion: 1\n" + std::string(3500, 'n') + "; " +
         std::string(3500, 'n') + ": 1\n";
}

void run_tree(const std::string& path) {
  const ChoiceTree tree = read_choice_tree(path);
  (void)tree.shape();
  (void)tree.depth();
}

}  // namespace

std::vector<FuzzTarget> text_file_targets() {
  return {{"prompts",
           "prompts.jsonl",
           {kPrompts, kMessages},
           json_words({"\"role\":", "\"content\":", "\"from\":", "\"value\":", "\"messages\":",
                       "\"turns\":", "\"prompt\":", "\"conversations\":", "\"user\"", "\"human\"",
                       "\\ud800", "\xFF", "\n"}),
           run_prompts},
          {.name = "tree",
           .file = "tree.yaml",
           .seeds = {kImportedTree, kCalibratedTree},
           .tokens = {"nodes:",     "calibration:",
                      "- ",         "  - [0, 0]\n",
                      "[",          "]",
                      ", ",         "-1",
                      "2147483648", ".nan",
                      ".inf",       "1e999",
                      "null",       "~",
                      "\"",         "\n",
                      "; ",         "&a ",
                      "*a",         "<<: ",
                      "!!binary ",  "{",
                      "}",          "? ",
                      "| ",         "\t",
                      "counts: []", "paths:\n"},
           .run = run_tree,
           .past_findings = {key_with_a_remedy()}}};
}

}  // namespace medusa::fuzz
