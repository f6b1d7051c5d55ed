#include "tools/check_dataset.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/fingerprint.h"
#include "data/tokenizer.h"

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

void check_dataset(const DatasetReader& dataset, const RunConfig& config,
                   const std::string& backbone) {
  check_made_with(config, "backbone", dataset.info().backbone, backbone);
  check_dataset_tokenizer(dataset, config);
}

void check_dataset_tokenizer(const DatasetReader& dataset, const RunConfig& config) {
  check_made_with(config, "tokenizer", dataset.info().tokenizer,
                  load_tokenizer(config.backbone.model)->fingerprint());
}

}  // namespace medusa
