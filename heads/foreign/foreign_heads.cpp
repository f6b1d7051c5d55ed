#include "heads/foreign/foreign_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "backbone/files/tensor_check.h"
#include "base/error.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const fs::path& path, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; download the heads again, or choose others", path.string(),
                              found_and_expected));
}

HeadLayout detect_layout(const HeadFiles& files) {
  for (const SafetensorsEntry& entry : files.tensors)
    if (const auto layout = layout_of_name(entry.name)) return *layout;
  fail(files.path,
       fmt::format("none of its {} tensors is named like a Medusa head's ('{}', …), expected names "
                   "like 0.0.linear.weight, blocks.0.layers.0.weight or "
                   "medusa_head.0.0.linear.weight",
                   files.tensors.size(), files.tensors.empty() ? "" : files.tensors[0].name));
}

/// Puts every tensor in its place, then looks for holes.
class Sorter {
 public:
  explicit Sorter(ForeignHeads& out) : out_(out) {}
  void sort();

 private:
  void place(const SafetensorsEntry& entry);
  void put(const SafetensorsEntry*& place, const SafetensorsEntry& entry);
  void check_places();
  void check_shapes();
  std::string name_of(HeadTensorKind part, int64_t head, int64_t layer) const {
    return head_tensor_name(out_.layout, {part, head, layer});
  }
  void expect_shape(const SafetensorsEntry& entry, std::vector<int64_t> shape) const {
    if (entry.shape != shape)
      fail(out_.files.path,
           fmt::format("tensor '{}' has shape {}, expected {} as '{}' suggests", entry.name,
                       shape_text(entry.shape), shape_text(shape), out_.weights[0]->name));
  }

  using Place = std::pair<int64_t, int64_t>;  // head, layer
  ForeignHeads& out_;
  std::map<Place, const SafetensorsEntry*> weights_, biases_;
  std::map<int64_t, std::pair<const SafetensorsEntry*, int64_t>> outputs_;  // and layers before it
};

void Sorter::place(const SafetensorsEntry& entry) {
  const auto name = parse_head_name(out_.layout, entry.name);
  if (!name) {
    if (const auto other = layout_of_name(entry.name))
      fail(out_.files.path,
           fmt::format("tensor '{}' is named in the layout '{}' and others in '{}', "
                       "expected heads in one layout",
                       entry.name, enum_name(*other), enum_name(out_.layout)));
    if (holds_whole_model(out_.layout)) return;
    fail(out_.files.path,
         fmt::format("tensor '{}' belongs to no part of heads in the layout '{}', expected only "
                     "heads",
                     entry.name, enum_name(out_.layout)));
  }
  switch (name->part) {
    case HeadTensorKind::Weight:
      put(weights_[{name->head, name->layer}], entry);
      break;
    case HeadTensorKind::Bias:
      put(biases_[{name->head, name->layer}], entry);
      break;
    case HeadTensorKind::Output:
      put(outputs_[name->head].first, entry);
      outputs_[name->head].second = name->layer;
      break;
    case HeadTensorKind::SharedOutput:
      put(out_.shared_output, entry);
      break;
    case HeadTensorKind::TokenMap:
      put(out_.token_map, entry);
      break;
    case HeadTensorKind::Scale:
      fail(out_.files.path,
           fmt::format("tensor '{}' belongs to quantized heads, expected float32, float16 or "
                       "bfloat16 ones",
                       entry.name));
  }
}

void Sorter::put(const SafetensorsEntry*& place, const SafetensorsEntry& entry) {
  if (place != nullptr)
    fail(out_.files.path, fmt::format("tensors '{}' and '{}' are the same part of a head, expected "
                                      "one of them",
                                      place->name, entry.name));
  place = &entry;
}

void Sorter::check_places() {
  if (out_.shared_output != nullptr && !outputs_.empty())
    fail(out_.files.path,
         fmt::format("holds '{}' for all heads and '{}' for one, expected one kind of output",
                     out_.shared_output->name, outputs_.begin()->second.first->name));
  for (const auto& [place, entry] : weights_) {
    out_.num_heads = std::max(out_.num_heads, place.first + 1);
    out_.layers_per_head = std::max(out_.layers_per_head, place.second + 1);
  }
  for (const auto& [head, output] : outputs_) out_.num_heads = std::max(out_.num_heads, head + 1);
  const auto missing = [&](HeadTensorKind part, int64_t head, int64_t layer) {
    fail(out_.files.path,
         fmt::format("has no tensor '{}', expected it in {} heads of {} layers",
                     name_of(part, head, layer), out_.num_heads, out_.layers_per_head));
  };
  for (int64_t head = 0; head < out_.num_heads; ++head) {
    for (int64_t layer = 0; layer < out_.layers_per_head; ++layer) {
      const auto weight = weights_.find({head, layer}), bias = biases_.find({head, layer});
      if (weight == weights_.end()) missing(HeadTensorKind::Weight, head, layer);
      if (bias == biases_.end() && !biases_.empty()) missing(HeadTensorKind::Bias, head, layer);
      out_.weights.push_back(weight->second);
      out_.biases.push_back(biases_.empty() ? nullptr : bias->second);
    }
    if (outputs_.empty()) continue;
    const auto output = outputs_.find(head);
    const int64_t layers = out_.layers_per_head;
    if (output == outputs_.end() || (output->second.second >= 0 && output->second.second != layers))
      missing(HeadTensorKind::Output, head, layers);
    out_.outputs.push_back(output->second.first);
  }
  if (biases_.size() > out_.weights.size())
    fail(out_.files.path, fmt::format("has a bias '{}' without its weight, expected both",
                                      biases_.rbegin()->second->name));
}

void Sorter::check_shapes() {
  for (const SafetensorsEntry& entry : out_.files.tensors)
    if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end())
      fail(out_.files.path, fmt::format("tensor '{}' has shape {}, expected one without a 0",
                                        entry.name, shape_text(entry.shape)));
  const SafetensorsEntry& first = *out_.weights[0];
  if (first.shape.size() != 2 || first.shape[0] != first.shape[1])
    fail(out_.files.path, fmt::format("tensor '{}' has shape {}, expected a square matrix",
                                      first.name, shape_text(first.shape)));
  out_.hidden_size = first.shape[0];
  out_.dtype = first.dtype;
  for (size_t i = 0; i < out_.weights.size(); ++i) {
    expect_shape(*out_.weights[i], {out_.hidden_size, out_.hidden_size});
    if (out_.biases[i] != nullptr) expect_shape(*out_.biases[i], {out_.hidden_size});
  }
  std::vector<const SafetensorsEntry*> outputs = out_.outputs;
  if (out_.shared_output != nullptr) outputs.push_back(out_.shared_output);
  for (const SafetensorsEntry* output : outputs) {
    if (out_.output_rows == 0 && !output->shape.empty()) out_.output_rows = output->shape[0];
    expect_shape(*output, {out_.output_rows, out_.hidden_size});
  }
  const auto is_plain = [](const SafetensorsEntry* entry) {
    return entry == nullptr || entry->dtype == "F32" || entry->dtype == "F16" ||
           entry->dtype == "BF16";
  };
  for (const auto* list : {&out_.weights, &out_.biases, &outputs})
    for (const SafetensorsEntry* entry : *list)
      if (!is_plain(entry))
        fail(out_.files.path, fmt::format("tensor '{}' is {}, expected F32, F16 or BF16",
                                          entry->name, entry->dtype));
  if (out_.token_map != nullptr &&
      (out_.token_map->shape.size() != 1 ||
       (out_.token_map->dtype != "I64" && out_.token_map->dtype != "I32")))
    fail(out_.files.path,
         fmt::format("tensor '{}' is {} {}, expected a list of I64 or I32", out_.token_map->name,
                     out_.token_map->dtype, shape_text(out_.token_map->shape)));
}

void Sorter::sort() {
  for (const SafetensorsEntry& entry : out_.files.tensors) place(entry);
  if (weights_.empty())
    fail(out_.files.path, "has outputs but no residual layer, expected heads with both");
  check_places();
  check_shapes();
  out_.has_bias = !biases_.empty();
  if (out_.layout == HeadLayout::FasterDecoding && out_.outputs.empty())
    out_.layout = HeadLayout::TgiV2;
}

}  // namespace

ForeignHeads read_foreign_heads(const fs::path& path) {
  ForeignHeads out;
  out.files = open_head_files(path);
  out.layout = detect_layout(out.files);
  Sorter(out).sort();
  return out;
}

}  // namespace medusa
