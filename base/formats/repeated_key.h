// JSON objects that have a key twice, of which nlohmann's parser keeps the last one silently.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// A callback of the parser. Calls f with each key that an object has had before.
template <typename F>
class OnRepeatedKey {
 public:
  explicit OnRepeatedKey(F f) : f_(std::move(f)) {}

  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event,
                  const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.get<std::string>()).second)
      f_(parsed.get<std::string>());
    return true;
  }

 private:
  F f_;
  std::vector<std::set<std::string>> open_;  // keys of the objects around the current place
};

}  // namespace medusa
