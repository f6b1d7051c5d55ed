#include "tools/check_dataset.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/fingerprint.h"
#include "data/tokenizer.h"
#include "tools/tuned_model.h"

namespace medusa {
namespace {

void check_made_with(const RunConfig& config, const char* what, const std::string& found,
                     const std::string& expected) {
  if (found == expected) return;
  throw UserError(fmt::format(
      "{}: made with {} {}, the one in {} has {}; distil again or pass the other backbone",
      config.dataset_folder().string(), what, short_fingerprint(found), config.backbone.model,
      short_fingerprint(expected)));
}

}  // namespace

bool check_dataset(const DatasetReader& dataset, const RunConfig& config,
                   const std::string& backbone) {
  const auto tuned = read_tuned_manifest(config.backbone.model);
  const bool text_serves = tuned && tuned->backbone == dataset.info().backbone;
  if (!text_serves) check_made_with(config, "backbone", dataset.info().backbone, backbone);
  check_dataset_tokenizer(dataset, config);
  return dataset.info().backbone == backbone;
}

void check_dataset_tokenizer(const DatasetReader& dataset, const RunConfig& config) {
  check_made_with(config, "tokenizer", dataset.info().tokenizer,
                  load_tokenizer(config.backbone.model)->fingerprint());
}

}  // namespace medusa
