#include "tools/compare/compare.h"

namespace medusa {
namespace {

struct SampleQuestion {
  const char* id;
  const char* category;
  const char* text;
};

constexpr SampleQuestion kSampleQuestions[] = {
    {"demo/1", "explain", "What is gravity?"},
    {"demo/2", "explain", "Why do leaves change colour in autumn?"},
    {"demo/3", "how-to", "How do I keep a cast-iron pan from rusting?"},
    {"demo/4", "writing",
     "Write a short story about a lighthouse keeper who finds a message in a bottle."},
    {"demo/5", "writing", "Write a polite email asking my landlord to repair the kitchen window."},
    {"demo/6", "maths",
     "A train travels 180 km in 2 hours and then 120 km in 1.5 hours. What is its "
     "average speed? Explain each step."},
    {"demo/7", "coding",
     "Write a Python function that returns the second largest number in a list."},
    {"demo/8", "coding", "Explain what a hash table is and when to use one."},
    {"demo/9", "summary",
     "Summarise the following in two sentences: The honey bee lives in colonies of "
     "up to sixty thousand workers. Each colony has one queen, who lays every egg. "
     "Workers gather nectar, care for the young, and guard the hive. In winter the "
     "colony huddles together and lives on the honey it has stored."},
    {"demo/10", "lists", "Give me five ideas for a rainy afternoon with two young children."},
    {"demo/11", "reasoning",
     "Compare the advantages and disadvantages of living in a city and in the "
     "countryside."},
    {"demo/12", "role play",
     "You are a museum guide. Welcome a group of visitors and introduce a famous "
     "painting."}};

}  // namespace

std::vector<Prompt> sample_questions() {
  std::vector<Prompt> out;
  for (const SampleQuestion& each : kSampleQuestions)
    out.push_back({.id = each.id,
                   .category = each.category,
                   .messages = {{"user", each.text}},
                   .later_turns = {}});
  return out;
}

}  // namespace medusa
