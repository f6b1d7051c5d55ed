#include "data/chat_template.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/json_value.h"
#include "tests/base/error_text.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

using fixtures::error_text;

TEST(ChatTemplate, ReproducesTheGoldenPromptsOfSmolLm2) {
  const std::filesystem::path golden = MEDUSA_SHARED_DATA "/golden/smollm2_golden.json";
  if (!std::filesystem::exists(fixtures::smollm2_path()) || !std::filesystem::exists(golden))
    GTEST_SKIP() << "needs " << fixtures::smollm2_path() << " and " << golden;
  const auto tokenizer = load_tokenizer(fixtures::smollm2_path());
  const auto chat = ChatTemplate::recognise(tokenizer->chat_template());
  EXPECT_EQ(chat.default_system(),
            "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  const Json data = read_json_file(golden);
  EXPECT_EQ(data.at("greedy").size(), 10U);
  for (const auto& entry : data.at("greedy"))
    EXPECT_EQ(chat.encode(*tokenizer, {{"user", entry.at("prompt").get<std::string>()}}),
              entry.at("prompt_ids").get<std::vector<TokenId>>());
  EXPECT_EQ(tokenizer->decode(chat.encode_open_user_turn(*tokenizer, "Explain how")),
            chat.user_prefix() + "Explain how");
}

}  // namespace
}  // namespace medusa
