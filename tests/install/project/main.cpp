// A program of somebody else's, over the installed library: writes a story with the tiny model, and
// trains heads on what else it tells. story MODEL OUT
#include <medusa/medusa.h>

#include <filesystem>
#include <iostream>
#include <vector>

int main(int, char** argv) {
  try {
    const std::filesystem::path out = argv[2];
    medusa::ModelOptions how;
    how.threads = 1;
    how.chat_template = "plain";
    const auto model = medusa::Model::load(argv[1], how);
    medusa::GeneratorOptions options;
    options.infer.max_new_tokens = 24;
    std::cout << medusa::Generator(model, options).generate("Once upon a time").text << "\n";

    std::vector<medusa::Prompt> prompts;
    for (const char* start : {"Lily and Tom", "The big dog", "At night"})
      prompts.push_back({start, "", {{"user", start}}, {}});
    medusa::DistillerOptions distilling;
    distilling.config.max_new_tokens = 24;
    distilling.config.batch = 2;
    distilling.dataset = out / "dataset";
    medusa::Distiller(model, distilling).run(prompts);
    medusa::HeadsTrainerOptions training;
    training.model = argv[1];
    training.loading = how;
    training.shape.num_heads = 2;
    training.shape.output = medusa::HeadOutput::Shared;  // fits a vocabulary of any size
    training.training.validation_fraction = 0;
    training.heads = out / "heads";
    training.work = out / "train";
    medusa::HeadsTrainer(training).run(medusa::DatasetReader(distilling.dataset));
    std::cerr << medusa::read_heads_manifest(training.heads).config.num_heads << " heads\n";
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
