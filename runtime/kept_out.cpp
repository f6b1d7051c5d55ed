#include "runtime/kept_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/fields.h"

namespace medusa {
namespace {

bool is_made_of(const DatasetReader& dataset, const LearnedText& text) {
  const auto& sources = dataset.sources();
  return std::any_of(sources.begin(), sources.end(),
                     [&](const auto& source) { return source.fingerprint == text.dataset; });
}

/// Of one text.
void check_text(std::string_view heads, const LearnedText& text, uint64_t seed, double fraction) {
  constexpr const char* kRemedy =
      "as other samples were trained on; set it back, or take text that the heads were not trained "
      "on, with --set train.data=[FOLDER]";
  if (text.seed.value_or(seed) != seed)
    throw UserError(fmt::format("{}: seed is {}, expected {} as in their training, {}", heads, seed,
                                *text.seed, kRemedy));
  const double kept_out = text.validation_fraction.value_or(fraction);
  if (fraction > kept_out)
    throw UserError(fmt::format(
        "{}: train.validation_fraction is {}, expected at most {} as in their training, {}", heads,
        number_text(fraction), number_text(kept_out), kRemedy));
}

}  // namespace

void check_kept_out(std::string_view heads, const HeadsManifest& manifest,
                    const DatasetReader& dataset, uint64_t seed, double fraction) {
  for (const LearnedText& text : learned_texts(manifest))
    if (is_made_of(dataset, text)) check_text(heads, text, seed, fraction);
}

}  // namespace medusa
