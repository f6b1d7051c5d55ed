#include "tools/inspect/tensor_totals.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace medusa {

void TensorTotals::add(std::string_view type, int64_t num_elements, int64_t bytes) {
  Total& total = by_type_[std::string(type)];
  ++total.tensors;
  total.parameters += num_elements;
  total.bytes += bytes;
}

int64_t TensorTotals::num_tensors() const {
  int64_t sum = 0;
  for (const auto& [type, total] : by_type_) sum += total.tensors;
  return sum;
}

int64_t TensorTotals::num_parameters() const {
  int64_t sum = 0;
  for (const auto& [type, total] : by_type_) sum += total.parameters;
  return sum;
}

void TensorTotals::describe(nlohmann::ordered_json& object) const {
  std::vector<std::pair<std::string, Total>> rows(by_type_.begin(), by_type_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  int64_t bytes = 0;
  auto table = nlohmann::ordered_json::array();
  for (const auto& [type, total] : rows) {
    bytes += total.bytes;
    table.push_back({{"type", type},
                     {"tensors", total.tensors},
                     {"parameters", total.parameters},
                     {"size_bytes", total.bytes}});
  }
  object["num_tensors"] = num_tensors();
  object["num_parameters"] = num_parameters();
  object["tensor_data_bytes"] = bytes;
  if (num_parameters() > 0)
    object["bits_per_parameter"] =
        8 * static_cast<double>(bytes) / static_cast<double>(num_parameters());
  object["tensors_by_type"] = std::move(table);
}

}  // namespace medusa
