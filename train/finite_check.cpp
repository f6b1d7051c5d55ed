#include "train/finite_check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"

namespace medusa {
namespace {

constexpr size_t kMostSamples = 8;  // named in a message

std::string samples_text(const std::vector<int64_t>& samples) {
  const size_t shown = std::min(samples.size(), kMostSamples);
  return fmt::format(
      "{}{}",
      fmt::join(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < samples.size() ? ", …" : "");
}

}  // namespace

void add_named_layer(const LayerWeights& layer, int64_t index, NamedTensors& out) {
  for (const auto& [name, part] : kLayerParts)
    if ((layer.*part).defined())
      out.emplace_back(fmt::format("layers.{}.{}", index, name), layer.*part);
}

NamedTensors named_weights(const Weights& weights) {
  NamedTensors out{{"embedding", weights.embedding}};
  for (size_t i = 0; i < weights.layers.size(); ++i)
    add_named_layer(weights.layers[i], static_cast<int64_t>(i), out);
  out.emplace_back("final_norm", weights.final_norm);
  out.emplace_back("lm_head", weights.lm_head);
  return out;
}

std::optional<std::string> first_not_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (tensor.defined() && !at::isfinite(tensor).all().item<bool>()) return name;
  return std::nullopt;
}

void check_finite(double loss, double gradient_norm, const StepPlace& place,
                  const NamedTensors& tensors) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return;
  const auto culprit = first_not_finite(tensors);
  std::string remedy = fmt::format("lower {} or look at these samples", place.rate_key);
  if (culprit && place.step == 0) remedy = "download or make that file again, or distil again";
  if (culprit && place.step > 0) remedy = fmt::format("lower {}", place.rate_key);
  throw UserError(fmt::format(
      "train: step {}, made of samples {}: the {} is {}{}, expected a finite number; {}{}",
      place.step, samples_text(place.samples), std::isfinite(loss) ? "gradient's norm" : "loss",
      std::isfinite(loss) ? gradient_norm : loss,
      culprit ? fmt::format(", and so is something in {}", *culprit)
              : ", though all weights are finite",
      remedy, place.checkpoint.empty() ? "" : fmt::format("; {} is kept", place.checkpoint)));
}

}  // namespace medusa
