#include "tools/commands/questions.h"

#include <algorithm>

#include "base/output.h"

namespace medusa {

PromptSet read_questions(const std::string& file) {
  PromptSet set = read_prompts(file);
  if (set.skipped > 0)
    print_note("{}: {} conversations without a user's message are skipped\n", file, set.skipped);
  return set;
}

void note_later_turns(const std::vector<Prompt>& prompts) {
  const auto several = std::count_if(prompts.begin(), prompts.end(),
                                     [](const Prompt& each) { return !each.later_turns.empty(); });
  if (several > 0)
    print_note(
        "note: {} of {} prompts have later turns, which are not answered here; medusa bench asks "
        "them, too\n",
        several, prompts.size());
}

}  // namespace medusa
