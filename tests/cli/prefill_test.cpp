// medusa distill --prefill: what it needs of a model, what it says, and what it refuses.
#include "program.h"

namespace medusa::cli {
namespace {

constexpr const char* kBook = "Once upon a time there was a little bird. It saw a big dog.";
constexpr const char* kChat =
    R"({"messages": [{"role": "user", "content": "Once"}, {"role": "assistant", "content": "upon"}]})"
    "\n";

/// The line that says what comes next, without its name.
std::string next_line(const ProcessResult& ran) {
  const size_t at = ran.err.find("next: ");
  if (at == std::string::npos) return ran.err;
  return ran.err.substr(at + 6, ran.err.find('\n', at) - at - 6);
}

TEST(Prefill, ADocumentNeedsNoChatTemplateAndAConversationDoes) {
  const CliFixture place;
  write_text(place / "book.txt", kBook);
  write_text(place / "chat.jsonl", kChat);
  const std::string distill = "distill " + CliFixture::model() + " --threads 1 --prefill ";
  const ProcessResult read = place.run(distill + "book.txt");
  EXPECT_EQ(read.status, 0) << read.err;
  const ProcessResult chat = place.run(distill + "chat.jsonl");
  EXPECT_EQ(chat.status, 2) << chat.err;
  EXPECT_NE(chat.err.find("backbone.chat_template"), std::string::npos) << chat.err;
}

TEST(Prefill, WhatComesNextCanBePastedAndNamesWhatIsThere) {
  const CliFixture place;
  write_text(place / "book.txt", kBook);
  const std::string prefill =
      "distill --config run.yaml --prefill book.txt --run \"runs/it's, mine\"";
  const ProcessResult alone = place.run(prefill);
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_NE(next_line(alone).find(R"(--set 'train.data=["runs/it'\''s, mine/dataset-text"]')"),
            std::string::npos)
      << alone.err;
  ASSERT_EQ(place.run("distill --config run.yaml --run \"runs/it's, mine\"").status, 0);
  const ProcessResult both = place.run(prefill);
  const std::string next = next_line(both);
  EXPECT_NE(next.find(R"(["runs/it'\''s, mine/dataset", "runs/it'\''s, mine/dataset-text"])"),
            std::string::npos)
      << both.err;
  const std::string words = next.substr(next.find(" train ") + 1);
  const ProcessResult trained = place.run(words + " --dry-run");
  EXPECT_EQ(trained.status, 0) << words << "\n" << trained.err;
}

TEST(Prefill, CountsPieces) {
  const CliFixture place;
  write_text(place / "book.txt", kBook);
  const ProcessResult ran = place.run("distill --config run.yaml --prefill book.txt");
  EXPECT_NE(ran.err.find("pieces"), std::string::npos) << ran.err;
  for (const char* other : {"prompts", "answers"})
    EXPECT_EQ(ran.err.find(other), std::string::npos) << ran.err;
}

TEST(Prefill, RefusesOptionsOfAnswers) {
  const CliFixture place;
  write_text(place / "book.txt", kBook);
  for (const char* idle :
       {"--temperature 0.5", "--top-p 0.5", "--top-k 3", "--max-tokens 9", "--batch 2"}) {
    const ProcessResult ran =
        place.run(std::string("distill --config run.yaml --prefill book.txt ") + idle);
    EXPECT_EQ(ran.status, 2) << idle;
    EXPECT_EQ(ran.err, std::string("medusa: distill --prefill: found ") + idle +
                           ", expected no option of answers, as none are written; leave it out\n");
  }
  EXPECT_FALSE(std::filesystem::exists(place / "runs/tiny/dataset-text"));
}

}  // namespace
}  // namespace medusa::cli
