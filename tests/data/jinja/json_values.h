// JSON as a template's variables, and the time that they see.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "data/chat/jinja/json.h"
#include "data/chat/jinja/template.h"

namespace medusa::fixtures {

using OrderedJson = nlohmann::ordered_json;

/// The members of an object; later objects win.
inline jinja::Variables to_variables(std::initializer_list<const OrderedJson*> objects,
                                     jinja::Heap& heap) {
  jinja::Variables variables;
  for (const OrderedJson* object : objects)
    for (const auto& [key, value] : object->items())
      variables.emplace_back(key, jinja::from_json(value.dump(), heap));
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
