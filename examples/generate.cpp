// Answers a prompt as it is written: example_generate MODEL PROMPT [HEADS TREE]
#include <medusa/medusa.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::cerr << "usage: example_generate MODEL PROMPT [HEADS TREE]\n";
    return 2;
  }
  try {
    const auto model = medusa::Model::load(argv[1]);
    medusa::GeneratorOptions options;
    if (argc == 5) {
      options.infer.drafter = medusa::DrafterKind::Medusa;
      options.files.heads = argv[3];
      options.files.tree = argv[4];
    }
    medusa::Generator generator(model, options);
    generator.generate(argv[2], [](std::string_view piece) {
      std::cout << piece << std::flush;
      return true;  // false would end the text
    });
    std::cout << "\n";
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
