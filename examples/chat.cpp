// A conversation: each line of standard input is a message, and the model sees all before it.
// example_chat MODEL
#include <medusa/medusa.h>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: example_chat MODEL\n";
    return 2;
  }
  try {
    const auto model = medusa::Model::load(argv[1]);
    medusa::GeneratorOptions options;
    options.infer.drafter = medusa::DrafterKind::PromptLookup;  // needs no heads
    options.infer.sampling.temperature = 0.7;
    options.seed = 1;
    medusa::Generator generator(model, options);
    std::vector<medusa::ChatMessage> conversation;
    for (std::string line; std::getline(std::cin, line);) {
      conversation.push_back({"user", line});
      const medusa::Answer answer = generator.chat(conversation, [](std::string_view piece) {
        std::cout << piece << std::flush;
        return true;
      });
      std::cout << "\n";
      conversation.push_back({"assistant", answer.text});
    }
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
