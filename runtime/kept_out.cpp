#include "runtime/kept_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/fields.h"

namespace medusa {
namespace {

/// Whether any of the texts is one that the heads were trained on.
bool were_trained_on(const HeadsManifest& heads, const DatasetReader& dataset) {
  const auto is_one = [&heads](const std::string& fingerprint) {
    return fingerprint == heads.dataset ||
           std::any_of(heads.mixed_datasets.begin(), heads.mixed_datasets.end(),
                       [&](const std::string& line) { return line.starts_with(fingerprint); });
  };
  const auto& sources = dataset.sources();
  return std::any_of(sources.begin(), sources.end(),
                     [&](const auto& source) { return is_one(source.fingerprint); });
}

}  // namespace

void check_kept_out(std::string_view heads, const HeadsManifest& manifest,
                    const DatasetReader& dataset, uint64_t seed, double fraction) {
  if (!were_trained_on(manifest, dataset)) return;
  constexpr const char* kRemedy =
      "as other samples were trained on; set it back, or take text that the heads were not trained "
      "on, with --set train.data=[FOLDER]";
  if (manifest.seed.value_or(seed) != seed)
    throw UserError(fmt::format("{}: seed is {}, expected {} as in their training, {}", heads, seed,
                                *manifest.seed, kRemedy));
  const double kept_out = manifest.validation_fraction.value_or(fraction);
  if (fraction > kept_out)
    throw UserError(fmt::format(
        "{}: train.validation_fraction is {}, expected at most {} as in their training, {}", heads,
        number_text(fraction), number_text(kept_out), kRemedy));
}

}  // namespace medusa
