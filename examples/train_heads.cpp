// From a model and questions to faster answers: the model answers the questions, heads learn from
// what it said, and the choice tree is fitted to this machine. Killed and started again, it
// continues.
// example_train_heads MODEL QUESTIONS OUT
#include <medusa/medusa.h>

#include <filesystem>
#include <iostream>

namespace {

constexpr double kKeptOut = 0.2;  // share of the answers that only judge

void tell(const medusa::StageProgress& now) {
  if (now.finished) std::cerr << now.stage << ": " << now.done << " " << now.unit << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: example_train_heads MODEL QUESTIONS OUT\n";
    return 2;
  }
  try {
    const std::filesystem::path out = argv[3];
    const auto questions = medusa::read_prompts(argv[2]).prompts;
    medusa::ModelOptions loading;
    loading.progress = tell;
    const auto model = medusa::Model::load(argv[1], loading);

    medusa::DistillerOptions distilling;
    distilling.config.max_new_tokens = 64;
    distilling.dataset = out / "dataset";
    medusa::Distiller(model, distilling).run(questions);
    const medusa::DatasetReader dataset(distilling.dataset);

    medusa::HeadsTrainerOptions training;
    training.model = argv[1];
    training.loading = loading;
    training.shape.num_heads = 2;
    training.shape.output = medusa::HeadOutput::Shared;  // fits a vocabulary of any size
    training.training.validation_fraction = kKeptOut;
    training.heads = out / "heads";
    training.work = out / "train";
    training.reported = [](const medusa::Metrics& report) {
      std::cerr << report.kind << ", step " << report.step << ": loss " << report.loss << "\n";
    };
    medusa::HeadsTrainer(training).run(dataset);

    medusa::CalibratorOptions calibration;
    calibration.config.max_nodes = 16;
    calibration.heads = training.heads;
    calibration.validation_fraction = kKeptOut;
    const medusa::ChoiceTree tree = medusa::Calibrator(model, calibration).run(dataset);
    medusa::write_choice_tree(out / "tree.yaml", tree, "Made by example_train_heads");

    medusa::GeneratorOptions decoding;
    decoding.infer.drafter = medusa::DrafterKind::Medusa;
    decoding.files.heads = training.heads;
    decoding.files.tree = out / "tree.yaml";
    const auto answer = medusa::Generator(model, decoding).chat(questions.front().messages);
    std::cout << answer.text << "\n";
    std::cerr << answer.tokens.size() << " tokens in " << answer.stats.steps << " passes\n";
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
