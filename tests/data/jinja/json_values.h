// JSON as a template's values.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/chat/jinja/template.h"
#include "data/chat/jinja/value.h"

namespace medusa::fixtures {

using OrderedJson = nlohmann::ordered_json;

inline jinja::Value to_value(const OrderedJson& json, jinja::Heap& heap) {
  if (json.is_null()) return jinja::None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return heap.text(json.get<std::string>());
  if (json.is_array()) {
    std::vector<jinja::Value> items;
    for (const auto& item : json) items.push_back(to_value(item, heap));
    return heap.list(std::move(items));
  }
  std::vector<std::pair<jinja::Value, jinja::Value>> entries;
  for (const auto& [key, value] : json.items())
    entries.emplace_back(heap.text(key), to_value(value, heap));
  return heap.dict(entries);
}

/// The members of an object; later objects win.
inline jinja::Variables to_variables(std::initializer_list<const OrderedJson*> objects,
                                     jinja::Heap& heap) {
  jinja::Variables variables;
  for (const OrderedJson* object : objects)
    for (const auto& [key, value] : object->items())
      variables.emplace_back(key, to_value(value, heap));
  return variables;
}

/// The moment at which the golden texts were made (tools/dev/make_jinja_golden.py): Sunday, 9 March
/// 2025, 14:05:07.
inline std::tm golden_now() {
  std::tm now{};
  now.tm_year = 125;
  now.tm_mon = 2;
  now.tm_mday = 9;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 7;
  now.tm_wday = 0;
  now.tm_yday = 67;
  return now;
}

}  // namespace medusa::fixtures
