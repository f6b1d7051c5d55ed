// A program of somebody else's, over the installed library: writes a story with the tiny model.
#include <medusa/medusa.h>

#include <iostream>

int main(int, char** argv) {
  try {
    medusa::ModelOptions how;
    how.threads = 1;
    how.chat_template = "plain";
    medusa::GeneratorOptions options;
    options.infer.max_new_tokens = 24;
    medusa::Generator generator(medusa::Model::load(argv[1], how), options);
    std::cout << generator.generate("Once upon a time").text << "\n";
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
