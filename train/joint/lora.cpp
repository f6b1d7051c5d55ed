#include "train/joint/lora.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace medusa {
namespace {

constexpr const char* kLmHead = "lm_head";

/// Where a target lies among the backbone's fused matrices.
struct TargetPlace {
  const char* name;
  LayerMatrix matrix;
  int part;  // of the matrix, from the top
};
constexpr std::array<TargetPlace, 7> kTargets{{{"q_proj", LayerMatrix::Qkv, 0},
                                               {"k_proj", LayerMatrix::Qkv, 1},
                                               {"v_proj", LayerMatrix::Qkv, 2},
                                               {"o_proj", LayerMatrix::Output, 0},
                                               {"gate_proj", LayerMatrix::GateUp, 0},
                                               {"up_proj", LayerMatrix::GateUp, 1},
                                               {"down_proj", LayerMatrix::Down, 0}}};

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const TargetPlace& target : kTargets) names.emplace_back(target.name);
  names.emplace_back(kLmHead);
  return names;
}

/// Rows of each part of a fused matrix.
std::vector<int64_t> part_rows(const ModelConfig& c, LayerMatrix matrix) {
  const int64_t query = c.num_heads * c.head_size, kv = c.num_kv_heads * c.head_size;
  switch (matrix) {
    case LayerMatrix::Qkv:
      return {query, kv, kv};
    case LayerMatrix::GateUp:
      return {c.mlp_size, c.mlp_size};
    case LayerMatrix::Output:
    case LayerMatrix::Down:
      break;
  }
  return {c.hidden_size};
}

at::Tensor uniform(at::IntArrayRef shape, double bound, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return (2 * at::rand(shape, generator, at::kFloat) - 1) * bound;
}

/// Numbers from 0 to 1. A GPU draws its own, other ones than the CPU: for every adapter of a large
/// model the CPU's would take longer than the step.
at::Tensor uniform_on(at::Device device, at::IntArrayRef shape, uint64_t seed) {
  if (device.is_cpu()) return uniform(shape, 0.5, seed).add(0.5);
  at::Generator generator = at::globalContext()
                                .getAcceleratorHooksInterface(device.type())
                                .getNewGenerator(device.index());
  generator.set_current_seed(seed);
  return at::rand(shape, generator, at::TensorOptions(device).dtype(at::kFloat));
}

Adapter make_adapter(const std::string& name, int64_t begin, int64_t rows, int64_t columns,
                     int64_t rank, const Random& random, uint64_t place, at::Device device) {
  // As a linear layer's own start: the adapter reads all of its input with even weight.
  const double bound = 1.0 / std::sqrt(static_cast<double>(columns));
  const uint64_t seed = random.bits(RandomUse::Init, static_cast<int64_t>(place));
  return {name,
          begin,
          rows,
          uniform({rank, columns}, bound, seed).to(device).set_requires_grad(true),
          at::zeros({rows, rank}, at::kFloat).to(device).set_requires_grad(true),
          place};
}

}  // namespace

void LoraConfig::validate() const {
  const std::vector<std::string> names = target_names();
  for (const std::string& target : targets) {
    if (std::find(names.begin(), names.end(), target) == names.end())
      throw UserError(
          fmt::format("train.joint.lora.targets: found '{}', expected some of {}; correct the name",
                      target, fmt::join(names, ", ")));
    if (std::count(targets.begin(), targets.end(), target) > 1)
      throw UserError(fmt::format(
          "train.joint.lora.targets: found '{}' twice, expected it once; remove one", target));
  }
  if (targets.empty())
    throw UserError(fmt::format(
        "train.joint.lora.targets: found no target, expected some of {}; name one or more",
        fmt::join(names, ", ")));
}

LoraAdapters::LoraAdapters(const LoraConfig& config, const Weights& model, uint64_t seed)
    : scale_(config.alpha / static_cast<double>(config.rank)),
      dropout_(config.dropout),
      layers_(model.layers.size()) {
  const ModelConfig& c = model.config;
  const Random random(seed);
  const at::Device device = model.lm_head.device();
  const auto wanted = [&](const char* name) {
    return std::find(config.targets.begin(), config.targets.end(), name) != config.targets.end();
  };
  uint64_t place = 0;
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    for (const TargetPlace& target : kTargets) {
      ++place;  // of every target, wanted or not: a target's start does not depend on the others
      if (!wanted(target.name)) continue;
      const std::vector<int64_t> rows = part_rows(c, target.matrix);
      int64_t begin = 0;
      for (int part = 0; part < target.part; ++part) begin += rows[static_cast<size_t>(part)];
      const int64_t columns = target.matrix == LayerMatrix::Output ? c.num_heads * c.head_size
                              : target.matrix == LayerMatrix::Down ? c.mlp_size
                                                                   : c.hidden_size;
      layers_[layer][static_cast<size_t>(target.matrix)].push_back(make_adapter(
          fmt::format("layers.{}.{}", layer, target.name), begin,
          rows[static_cast<size_t>(target.part)], columns, config.rank, random, place, device));
    }
  if (wanted(kLmHead))
    lm_head_.push_back(make_adapter(kLmHead, 0, c.vocab_size, c.hidden_size, config.rank, random,
                                    place + 1, device));
}

const LoraAdapters::Slots& LoraAdapters::slots(int64_t layer, LayerMatrix matrix) const {
  return layers_[static_cast<size_t>(layer)][static_cast<size_t>(matrix)];
}

int64_t LoraAdapters::first_layer() const {
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    for (const Slots& adapters : layers_[layer])
      if (!adapters.empty()) return static_cast<int64_t>(layer);
  return static_cast<int64_t>(layers_.size());
}

at::Tensor LoraAdapters::add_to(const at::Tensor& y, const at::Tensor& x, int64_t layer,
                                LayerMatrix matrix, const std::optional<Random>& dropout) const {
  const Slots& adapters = slots(layer, matrix);
  if (adapters.empty()) return y;
  const at::ScalarType dtype = y.scalar_type();
  std::vector<at::Tensor> parts;  // of y, from the left
  int64_t end = 0;
  for (const Adapter& adapter : adapters) {  // in the order of their rows
    at::Tensor read = x.to(dtype);
    if (dropout && dropout_ > 0) {
      const uint64_t seed = dropout->bits(RandomUse::Dropout, static_cast<int64_t>(adapter.place));
      const at::Tensor kept = uniform_on(y.device(), x.sizes(), seed).ge(dropout_);
      read = read * kept.to(dtype) / (1 - dropout_);
    }
    const at::Tensor delta =
        at::linear(at::linear(read, adapter.a.to(dtype)), adapter.b.to(dtype)) * scale_;
    if (adapter.begin > end) parts.push_back(y.narrow(1, end, adapter.begin - end));
    parts.push_back(y.narrow(1, adapter.begin, adapter.rows) + delta);
    end = adapter.begin + adapter.rows;
  }
  if (end < y.size(1)) parts.push_back(y.narrow(1, end, y.size(1) - end));
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

at::Tensor LoraAdapters::merge(const at::Tensor& matrix, const Slots& adapters) const {
  if (adapters.empty()) return matrix;
  std::vector<at::Tensor> parts;  // of the matrix, from the top
  int64_t end = 0;
  for (const Adapter& adapter : adapters) {
    if (adapter.begin > end) parts.push_back(matrix.narrow(0, end, adapter.begin - end));
    const at::Tensor sum = matrix.narrow(0, adapter.begin, adapter.rows).to(at::kFloat) +
                           at::mm(adapter.b, adapter.a) * scale_;
    parts.push_back(sum.to(matrix.scalar_type()));
    end = adapter.begin + adapter.rows;
  }
  if (end < matrix.size(0)) parts.push_back(matrix.narrow(0, end, matrix.size(0) - end));
  return at::cat(parts);
}

at::Tensor LoraAdapters::merged(const at::Tensor& matrix, int64_t layer, LayerMatrix which) const {
  return merge(matrix, slots(layer, which));
}

at::Tensor LoraAdapters::merged_lm_head(const at::Tensor& lm_head) const {
  return merge(lm_head, lm_head_);
}

NamedTensors LoraAdapters::named_parameters() const {
  NamedTensors out;
  const auto add = [&](const Slots& adapters) {
    for (const Adapter& adapter : adapters) {
      out.emplace_back(adapter.name + ".a", adapter.a);
      out.emplace_back(adapter.name + ".b", adapter.b);
    }
  };
  for (const auto& layer : layers_)
    for (const Slots& adapters : layer) add(adapters);
  add(lm_head_);
  return out;
}

}  // namespace medusa
