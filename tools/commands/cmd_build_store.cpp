// medusa build-store: makes the file that the retrieval drafter looks texts up in.
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/output.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample_order.h"
#include "infer/drafters/text_store.h"
#include "runtime/check_dataset.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

/// The samples that go into the store. Those kept for validation stay out unless asked for: else
/// what is measured on them would only be remembered.
std::vector<int64_t> chosen_samples(const RunConfig& config, const DatasetReader& dataset,
                                    bool all) {
  const double fraction = all ? 0 : config.train.config.validation_fraction;
  return split_dataset(Random(config.seed), dataset, fraction).train;
}

void run_build_store(const CommonOptions& common, bool all) {
  const RunConfig config = read_run_config(common);
  check_output_file(config.store_file(), ArtifactKind::TextStore);
  const DatasetReader dataset = open_dataset(config);
  check_dataset_tokenizer(dataset, config.backbone.model);
  TextStoreWriter writer;
  for (const int64_t sample : chosen_samples(config, dataset, all))
    writer.add(dataset.tokens(sample));
  if (config.store_file().has_parent_path()) make_folder(config.store_file().parent_path());
  writer.write(config.store_file(), {.tokenizer = dataset.info().tokenizer,
                                     .dataset = dataset.fingerprint(),
                                     .samples = all ? "all" : "training"});
  const TextStoreInfo info = TextStore(config.store_file()).info();
  if (common.json)
    print_json(nlohmann::json{{"store", config.store_file().string()},
                              {"texts", info.num_texts},
                              {"tokens", writer.num_tokens()},
                              {"samples", info.samples}});
  else
    print_note("{} texts, {} tokens\nstore: {}\n", info.num_texts, writer.num_tokens(),
               config.store_file().string());
  print_next(common, "generate", {"What is gravity?", "--drafter", "retrieval"});
}

}  // namespace

Command build_store_command() {
  return {.name = "build-store",
          .summary = "sort the dataset's texts for the retrieval drafter",
          .sections = {"backbone", "train", "generate"},
          .settings = {"--seed"},
          .examples = {"build-store model.gguf"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto all = std::make_shared<bool>(false);
            added.flag("--all", *all, "also the texts kept for validation");
            return [all, &common] { run_build_store(common, *all); };
          }};
}

}  // namespace medusa
