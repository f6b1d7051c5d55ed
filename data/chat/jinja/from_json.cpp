#include "data/chat/jinja/from_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace medusa::jinja {

Value from_json(const nlohmann::ordered_json& json, Heap& heap) {
  heap.step();
  const Descent descent(heap);
  if (json.is_string()) return heap.text(json.get<std::string>());
  if (json.is_boolean()) return json.get<bool>();
  const bool fits =
      !json.is_number_unsigned() || json.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
  if (json.is_number_integer() && fits) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& each : json) items.push_back(from_json(each, heap));
    return heap.list(std::move(items));
  }
  if (json.is_object()) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, value] : json.items())
      entries.emplace_back(heap.text(key), from_json(value, heap));
    return heap.dict(entries);
  }
  return None{};
}

}  // namespace medusa::jinja
