#include "data/starter_topics.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>

#include "base/check.h"

namespace medusa {
namespace {

using Texts = std::span<const std::string_view>;

/// One kind of work: openings, in which {} stands for a subject, and the subjects.
struct Kind {
  Texts openings;
  Texts subjects;
};

constexpr auto kExplain = std::to_array<std::string_view>(
    {"Explain how {}", "Why do {}", "What are {}", "Can you explain to a ten-year-old how {}",
     "I read something about how {}", "How do {}", "Describe in simple words how {}",
     "What is the reason that {}", "What happens when {}"});
constexpr auto kThings = std::to_array<std::string_view>(
    {"volcanoes",   "vaccines",      "black holes",    "bees",          "interest rates",
     "glaciers",    "electric cars", "the tides",      "dreams",        "solar panels",
     "coral reefs", "antibiotics",   "search engines", "stock markets", "migrating birds",
     "earthquakes", "batteries",     "muscles",        "satellites",    "viruses",
     "airplanes",   "plants",        "rivers",         "computers",     "memories",
     "languages",   "magnets",       "hurricanes"});

constexpr auto kCompare = std::to_array<std::string_view>(
    {"What is the difference between {}", "Compare {}", "What are the advantages of {}",
     "Which is better for a beginner, {}", "Discuss the pros and cons of {}",
     "Help me choose between {}"});
constexpr auto kChoices = std::to_array<std::string_view>({"renting",
                                                           "a virus",
                                                           "a comet",
                                                           "running",
                                                           "Python",
                                                           "mean",
                                                           "working at home",
                                                           "tea",
                                                           "a republic",
                                                           "cats",
                                                           "nuclear power",
                                                           "weather",
                                                           "public transport",
                                                           "a novel",
                                                           "butter",
                                                           "a laptop",
                                                           "capitalism",
                                                           "online classes",
                                                           "a simile",
                                                           "an alligator",
                                                           "a loan",
                                                           "living in a city",
                                                           "wood",
                                                           "a lawyer"});

constexpr auto kHowTo = std::to_array<std::string_view>(
    {"How do I {}", "What is the best way to {}", "Give me step-by-step instructions to {}",
     "I have never tried to {}", "Give me five tips on how to {}", "What do I need to {}",
     "Is it hard to {}", "I want to {}"});
constexpr auto kTasks = std::to_array<std::string_view>(
    {"bake bread",        "learn the guitar",   "remove a stain",   "prepare for a job interview",
     "save money",        "grow tomatoes",      "fall asleep",      "train a puppy",
     "change a tire",     "write a resume",     "plan a trip",      "start a small business",
     "fix a leaking",     "cook rice",          "learn a language", "paint a room",
     "improve my memory", "speak in public",    "repair a bicycle", "organize my desk",
     "make friends",      "take better photos", "lose weight",      "set up a home network"});

constexpr auto kStory = std::to_array<std::string_view>(
    {"Write a short story about {}", "Write a poem about {}", "Tell me a story in which {}",
     "Write the first paragraph of a novel about {}", "Write a dialogue between {}",
     "Write a haiku about {}", "Invent a fairy tale with {}", "Write song lyrics about {}"});
constexpr auto kCharacters = std::to_array<std::string_view>({"a lighthouse keeper",
                                                              "an old robot",
                                                              "two brothers",
                                                              "a lost letter",
                                                              "the last tree",
                                                              "a dragon",
                                                              "a detective",
                                                              "autumn",
                                                              "a train",
                                                              "a girl who",
                                                              "a city under",
                                                              "a clockmaker",
                                                              "an astronaut",
                                                              "a talking cat",
                                                              "the sea",
                                                              "a soldier",
                                                              "a library",
                                                              "a baker",
                                                              "a storm",
                                                              "a king without",
                                                              "my grandmother",
                                                              "a small village",
                                                              "an island",
                                                              "time travel"});

constexpr auto kLetter = std::to_array<std::string_view>(
    {"Write an email to {}", "Draft a polite letter to {}", "Help me write a message to {}",
     "Write a short speech for {}", "Write a blog post for {}", "Write a review of {}",
     "Write an advertisement for {}"});
constexpr auto kReaders = std::to_array<std::string_view>(
    {"my manager",     "a customer",        "my landlord",     "my teacher",
     "a hotel",        "a local newspaper", "a friend who",    "the city council",
     "a new neighbor", "my team",           "a restaurant",    "an online shop",
     "a wedding",      "a museum",          "a travel agency", "a bank",
     "a coffee shop",  "the parents of",    "a book about",    "a phone"});

constexpr auto kMaths = std::to_array<std::string_view>(
    {"{} has", "{} buys", "{} is twice as old as", "{} earns", "{} drives", "{} reads", "{} bakes",
     "{} saves", "{} and two friends share", "{} needs", "Every day {}", "If {} walks"});
constexpr auto kPeople = std::to_array<std::string_view>(
    {"Maria",  "Tom",   "A farmer", "Aisha", "A school",  "Kenji",    "Sofia",          "A shop",
     "Daniel", "Priya", "A train",  "Lucas", "A factory", "Mr. Chen", "Olivia",         "A baker",
     "Omar",   "Grace", "A class",  "Elena", "A library", "Ben",      "A truck driver", "Noah"});

constexpr auto kCompute = std::to_array<std::string_view>(
    {"Solve for x: {}", "Calculate {}", "What is {}", "Find {}", "Simplify {}", "Prove that {}"});
constexpr auto kQuantities = std::to_array<std::string_view>({"3x",
                                                              "2(x",
                                                              "the area of",
                                                              "the sum of",
                                                              "15% of",
                                                              "the derivative of",
                                                              "the probability",
                                                              "the square root of",
                                                              "the volume of",
                                                              "the average of",
                                                              "the product of",
                                                              "the number of ways",
                                                              "x^2",
                                                              "the slope",
                                                              "the median of",
                                                              "the greatest common",
                                                              "the perimeter of",
                                                              "the next number",
                                                              "1/3",
                                                              "the angle"});

constexpr auto kCode = std::to_array<std::string_view>(
    {"Write a Python function that {}", "Write a program in Java that {}",
     "Write a JavaScript function that {}", "Write a C++ function that {}",
     "Write a bash script that {}", "Explain this code, which {}",
     "Write unit tests for code that {}", "Write an SQL query that {}"});
constexpr auto kPrograms = std::to_array<std::string_view>(
    {"sorts a list",      "reverses",   "checks whether", "counts the",      "reads a file",
     "finds the largest", "removes",    "computes the",   "returns the",     "converts",
     "merges two",        "prints all", "searches",       "splits a string", "generates",
     "validates",         "groups",     "replaces",       "takes two",       "calculates the"});

constexpr auto kText = std::to_array<std::string_view>(
    {"Summarize the following text: {}", "Summarize this article in one sentence: {}",
     "Give a title to this paragraph: {}", "Rewrite this paragraph in simple language: {}",
     "List the main points of this text: {}", "Correct the grammar of this text: {}",
     "Answer the question from the passage. Passage: {}"});
constexpr auto kBeginnings =
    std::to_array<std::string_view>({"The city of",    "Scientists have",      "In recent years,",
                                     "The company",    "During the war,",      "A new study",
                                     "Researchers at", "The history of",       "Last summer,",
                                     "The human body", "Many people",          "The president",
                                     "According to",   "In the 19th century,", "The football team",
                                     "Farmers in",     "Global trade",         "The river",
                                     "Artificial",     "When the museum"});

constexpr auto kTranslate = std::to_array<std::string_view>(
    {"Translate into French: {}", "Translate this sentence to Spanish: {}",
     "How do you say in German: {}", "Translate from English to Italian: {}",
     "What does this mean in English: {}", "Put this sentence into the past tense: {}",
     "Rewrite this sentence in a formal tone: {}", "Make this sentence shorter: {}"});
constexpr auto kSentences = std::to_array<std::string_view>(
    {"The weather", "I would like", "Where is",  "My sister", "She has been",
     "We should",   "The children", "Yesterday", "If you",    "The old house",
     "He told me",  "Please",       "They are",  "It was",    "The train",
     "Nobody",      "Our teacher",  "There are", "I forgot",  "Despite"});

constexpr auto kRole = std::to_array<std::string_view>(
    {"You are {}", "Pretend to be {}", "Act as {}", "Imagine you are {}",
     "Answer as if you were {}", "Let's play a game: you are {}"});
constexpr auto kRoles = std::to_array<std::string_view>(
    {"a travel guide",    "a doctor",         "a pirate",          "an interviewer",
     "a historian",       "a chef",           "a science teacher", "a stand-up comedian",
     "an English tutor",  "a personal coach", "a philosopher",     "a museum guide",
     "a medieval knight", "a gardener",       "a financial",       "a detective",
     "Albert Einstein",   "a poet",           "a sports reporter", "an alien"});

constexpr auto kExtract = std::to_array<std::string_view>(
    {"Extract {}", "Classify {}", "Make a table of {}", "Sort {}", "Identify {}",
     "Is the sentiment positive or negative: {}", "Give me JSON with {}", "Find all {}"});
constexpr auto kData = std::to_array<std::string_view>(
    {"the names", "the following animals", "the dates", "these words", "the prices", "the verbs",
     "the following reviews", "the planets", "these countries", "the key facts", "the ingredients",
     "the adjectives", "the phone numbers", "these books", "the steps", "the main characters"});

constexpr auto kChat = std::to_array<std::string_view>(
    {"I feel {}", "Do you think {}", "What is your opinion on {}", "Tell me something about {}",
     "I had a long day and {}", "Recommend {}", "My friend says that {}", "Tell me a joke about {}",
     "What should I do if {}", "I am curious about {}"});
constexpr auto kEveryday = std::to_array<std::string_view>(
    {"music",        "my job",       "a good book", "the weekend",  "modern art",
     "my dog",       "social media", "a movie",     "cooking",      "being alone",
     "football",     "the future",   "my neighbor", "space travel", "learning",
     "a holiday in", "old friends",  "money",       "video games",  "the weather"});

constexpr auto kReason = std::to_array<std::string_view>(
    {"What would happen if {}", "Imagine a world where {}", "Here is a riddle: {}",
     "Is it possible that {}", "Think step by step: {}", "How many {}",
     "Is this argument valid? {}", "What can we conclude if {}"});
constexpr auto kPremises = std::to_array<std::string_view>(
    {"the moon",   "all cats",     "nobody",           "three people", "people",
     "every door", "the internet", "humans",           "dinosaurs",    "two trains",
     "money",      "the sun",      "five friends",     "water",        "all birds",
     "a box",      "books",        "the Roman Empire", "animals",      "the taller"});

constexpr auto kLists = std::to_array<std::string_view>(
    {"List five {}", "Give me ideas for {}", "Suggest names for {}", "What are some examples of {}",
     "Brainstorm {}", "Name three {}", "Write a shopping list for {}", "Create a quiz about {}",
     "Make a weekly plan for {}"});
constexpr auto kCollections =
    std::to_array<std::string_view>({"healthy breakfasts", "birthday gifts",    "famous scientists",
                                     "renewable",          "a science project", "team games",
                                     "a vegetarian",       "inventions",        "a small apartment",
                                     "European capitals",  "a startup that",    "synonyms",
                                     "endangered animals", "outdoor",           "a school party",
                                     "a marathon",         "mammals",           "classic novels",
                                     "a rainy day",        "world history"});

constexpr auto kKnowledge = std::to_array<std::string_view>(
    {"Who was {}", "When did {}", "What caused {}", "Describe the role of {}",
     "Write an essay about {}", "What do historians say about {}", "How did {}",
     "What is the importance of {}", "Give a short overview of {}"});
constexpr auto kSubjects = std::to_array<std::string_view>({"the French Revolution",
                                                            "Marie Curie",
                                                            "photosynthesis",
                                                            "the Silk Road",
                                                            "Shakespeare",
                                                            "plate tectonics",
                                                            "the printing press",
                                                            "the Cold War",
                                                            "evolution",
                                                            "inflation",
                                                            "ancient Egypt",
                                                            "the periodic table",
                                                            "quantum mechanics",
                                                            "Buddhism",
                                                            "the immune system",
                                                            "the Great Depression",
                                                            "Leonardo da Vinci",
                                                            "climate change",
                                                            "the Constitution",
                                                            "DNA",
                                                            "supply and demand",
                                                            "Mozart",
                                                            "the ozone layer",
                                                            "Isaac Newton"});

constexpr std::array kKinds = {
    Kind{kExplain, kThings},     Kind{kStory, kCharacters},    Kind{kMaths, kPeople},
    Kind{kCode, kPrograms},      Kind{kHowTo, kTasks},         Kind{kText, kBeginnings},
    Kind{kKnowledge, kSubjects}, Kind{kTranslate, kSentences}, Kind{kLetter, kReaders},
    Kind{kCompare, kChoices},    Kind{kReason, kPremises},     Kind{kRole, kRoles},
    Kind{kCompute, kQuantities}, Kind{kChat, kEveryday},       Kind{kExtract, kData},
    Kind{kLists, kCollections},
};

int64_t combinations(const Kind& kind) {
  return static_cast<int64_t>(kind.openings.size() * kind.subjects.size());
}

/// A step that visits all of 0 … count - 1 before it comes back, and jumps far each time.
int64_t stride_for(int64_t count) {
  int64_t stride = count * 618 / 1000 + 1;
  while (std::gcd(stride, count) != 1) ++stride;
  return stride;
}

}  // namespace

std::string starter(int64_t i, const Random& random) {
  MEDUSA_ASSERT(i >= 0, i);
  const auto num_kinds = static_cast<int64_t>(kKinds.size());
  const int64_t which = i % num_kinds;
  const Kind& kind = kKinds[static_cast<size_t>(which)];
  const int64_t count = combinations(kind);
  const auto offset =
      static_cast<int64_t>(random.bits(RandomUse::Question, which) % static_cast<uint64_t>(count));
  const int64_t visit = i / num_kinds % count;
  const auto pair = static_cast<size_t>((offset + visit * stride_for(count)) % count);
  std::string text(kind.openings[pair % kind.openings.size()]);
  const size_t hole = text.find("{}");
  return text.replace(hole, 2, kind.subjects[pair / kind.openings.size()]);
}

int64_t num_distinct_starters() {
  int64_t least = combinations(kKinds[0]);
  for (const Kind& kind : kKinds) least = std::min(least, combinations(kind));
  return least * static_cast<int64_t>(kKinds.size());
}

}  // namespace medusa
