// The keys of JSON's objects: one that an object has twice, of which nlohmann's parser keeps the
// last silently, and how many an object has. Its callbacks would tell them in the same pass, but
// take time by the square of a list's length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// Of a text that is no JSON, up to where it is none.
struct ObjectKeys {
  std::optional<std::string> repeated;  // the first one; nothing is read behind it
  size_t most = 0;                      // keys of the object that has the most
};

namespace detail {

class KeyReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  ObjectKeys found;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool start_object(size_t /*size*/) override {
    open_.emplace_back();
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& value) override {
    std::set<std::string>& keys = open_.back();
    if (!keys.insert(value).second) {
      found.repeated = value;
      return false;
    }
    found.most = std::max(found.most, keys.size());
    return true;
  }
  bool parse_error(size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> open_;  // keys of the objects around the current place
};

}  // namespace detail

/// @param text  that does not nest too deeply.
inline ObjectKeys read_object_keys(std::string_view text) {
  detail::KeyReader reader;
  nlohmann::json::sax_parse(text, &reader);
  return std::move(reader.found);
}

}  // namespace medusa
