// What our tokenizers and chat templates make of files that others published. Not a test: built on
// request and run by tools/dev/check_published.py, which compares it with what their packages make.
//
//   text_probe encode TOKENIZER [FAMILY]    texts -> lists of ids; FAMILY of a folder with
//   vocab.json and merges.txt text_probe render TEMPLATE              objects of variables ->
//   {"text"} or {"error"} text_probe chat TEMPLATE                lists of messages -> {"text"}, as
//   the built-in template that is recognized
//
// Reads a JSON value from each line of the standard input and writes one for each.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "data/chat/chat_template.h"
#include "data/chat/jinja/template.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/jinja/json_values.h"

namespace {

using namespace medusa;
using fixtures::OrderedJson;

std::function<OrderedJson(const OrderedJson&)> encoder(const std::string& path,
                                                       const std::string& family) {
  std::shared_ptr<Tokenizer> tokenizer =
      family.empty() ? load_tokenizer(path)
                     : std::make_unique<BpeTokenizer>(bpe_from_vocab(path, family));
  return [tokenizer](const OrderedJson& text) {
    return OrderedJson(tokenizer->encode(text.get<std::string>(), /*parse_special=*/false));
  };
}

/// At the moment of tools/dev/make_jinja_golden.py.
OrderedJson render(const std::string& source, const OrderedJson& variables) {
  jinja::RenderOptions options;
  options.now = fixtures::golden_now();
  try {
    return {
        {"text",
         jinja::Template(source, "template")
             .render([&](jinja::Heap& heap) { return fixtures::to_variables({&variables}, heap); },
                     options)}};
  } catch (const UserError& error) {
    return {{"error", error.what()}};
  }
}

OrderedJson chat(const std::string& source, const OrderedJson& conversation) {
  std::vector<ChatMessage> messages;
  for (const auto& message : conversation)
    messages.push_back({message.at("role"), message.at("content")});
  const auto known = ChatTemplate::recognize(source);
  return {{"text", known ? OrderedJson(known->render(messages, true)) : OrderedJson(nullptr)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: text_probe encode|render|chat FILE [FAMILY]\n");
    return 2;
  }
  try {
    const std::string action = argv[1], path = argv[2];
    std::function<OrderedJson(const OrderedJson&)> answer;
    if (action == "encode")
      answer = encoder(path, argc > 3 ? argv[3] : "");
    else
      answer = [&, source = read_file(path)](const OrderedJson& asked) {
        return action == "render" ? render(source, asked) : chat(source, asked);
      };
    for (std::string line; std::getline(std::cin, line);)
      fmt::print("{}\n", answer(OrderedJson::parse(line)).dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "text_probe: {}\n", error.what());
    return 2;
  }
}
