#include "runtime/check_dataset.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/fingerprint.h"
#include "data/tokenizer/tokenizer.h"
#include "runtime/tuned_model.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

void check_made_with(const DatasetReader& dataset, const fs::path& model, const char* what,
                     const std::string& found, const std::string& expected) {
  if (found == expected) return;
  throw UserError(fmt::format(
      "{}: made with {} {}, the one in {} has {}; distil again or pass the other backbone",
      dataset.sources()[0].folder.string(), what, short_fingerprint(found), model.string(),
      short_fingerprint(expected)));
}

/// A fingerprint says which model it is of; a dataset of unknown origin may say any.
void check_fits_model(const DatasetReader& dataset, const fs::path& model,
                      const ModelConfig& shape) {
  const auto fail = [&](const std::string& found, int64_t expected) {
    throw UserError(fmt::format(
        "{}: {}, the model in {} has {}, expected a dataset that this model wrote; distil again or "
        "pass the other backbone",
        dataset.sources()[0].folder.string(), found, model.string(), expected));
  };
  const DatasetInfo& info = dataset.info();
  if (info.vocab_size != shape.vocab_size)
    fail(fmt::format("its tokens are of a vocabulary of {}", info.vocab_size), shape.vocab_size);
  if (info.hidden_size != 0 && info.hidden_size != shape.hidden_size)
    fail(fmt::format("its hidden states have {} numbers", info.hidden_size), shape.hidden_size);
  for (int64_t i = 0; i < dataset.size(); ++i)
    if (std::ssize(dataset.tokens(i)) > shape.context)
      fail(fmt::format("sample '{}' needs a context of {} tokens", dataset.prompt_id(i),
                       dataset.tokens(i).size()),
           shape.context);
}

}  // namespace

bool check_dataset(const DatasetReader& dataset, const fs::path& model, const std::string& backbone,
                   const ModelConfig& shape) {
  const auto tuned = read_tuned_manifest(model);
  const bool text_serves = tuned && tuned->backbone == dataset.info().backbone;
  if (!text_serves) check_made_with(dataset, model, "backbone", dataset.info().backbone, backbone);
  check_dataset_tokenizer(dataset, model);
  check_fits_model(dataset, model, shape);
  return dataset.info().backbone == backbone;
}

void check_dataset_tokenizer(const DatasetReader& dataset, const fs::path& model) {
  check_made_with(dataset, model, "tokenizer", dataset.info().tokenizer,
                  load_tokenizer(model)->fingerprint());
}

}  // namespace medusa
