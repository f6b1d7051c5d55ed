#include "tools/check_dataset.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/fingerprint.h"
#include "data/tokenizer.h"
#include "tools/tuned_model.h"

namespace medusa {
namespace {

void check_made_with(const DatasetReader& dataset, const RunConfig& config, const char* what,
                     const std::string& found, const std::string& expected) {
  if (found == expected) return;
  throw UserError(fmt::format(
      "{}: made with {} {}, the one in {} has {}; distil again or pass the other backbone",
      dataset.sources()[0].folder.string(), what, short_fingerprint(found), config.backbone.model,
      short_fingerprint(expected)));
}

}  // namespace

DatasetReader open_dataset(const RunConfig& config) {
  const auto& names = config.train.data;
  const auto& weights = config.train.data_weights;
  if (names.empty()) return DatasetReader(config.dataset_folder());
  std::vector<WeightedFolder> folders;
  for (size_t i = 0; i < names.size(); ++i)
    folders.push_back({names[i], weights.empty() ? 1 : weights[i]});
  return DatasetReader(folders);
}

bool check_dataset(const DatasetReader& dataset, const RunConfig& config,
                   const std::string& backbone) {
  const auto tuned = read_tuned_manifest(config.backbone.model);
  const bool text_serves = tuned && tuned->backbone == dataset.info().backbone;
  if (!text_serves) check_made_with(dataset, config, "backbone", dataset.info().backbone, backbone);
  check_dataset_tokenizer(dataset, config);
  return dataset.info().backbone == backbone;
}

void check_dataset_tokenizer(const DatasetReader& dataset, const RunConfig& config) {
  check_made_with(dataset, config, "tokenizer", dataset.info().tokenizer,
                  load_tokenizer(config.backbone.model)->fingerprint());
}

}  // namespace medusa
