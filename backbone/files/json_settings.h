// The settings of a Hugging Face folder, which are JSON. Only hf_config.cpp, hf_sizes.cpp,
// hf_rope.cpp and heads/eagle3.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backbone/files/model_config_check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/token.h"

namespace medusa {

/// One JSON file of a model folder; every question about a key ends in a value or a UserError.
class JsonSettings {
 public:
  using Json = nlohmann::json;

  explicit JsonSettings(std::filesystem::path path) : path_(std::move(path)) {
    const std::string text = read_file(path_);
    if (!nests_too_deeply(text)) root_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!root_.is_object())
      throw UserError(
          fmt::format("{}: is not a JSON object; copy or download the file again", path_.string()));
  }

  [[noreturn]] void fail(const std::string& found_and_expected) const {
    throw UserError(fmt::format("{}: {}; use the {} that came with the model, or another model",
                                path_.string(), found_and_expected, path_.filename().string()));
  }

  /// Null when the key is missing or its value is null: Hugging Face writes both.
  const Json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  /// Whether the key is there, null or not.
  bool contains(const char* key) const { return root_.contains(key); }

  int64_t integer(const char* key) const {
    const Json& value = required(key, "a whole number");
    if (!value.is_number_integer()) mistyped(key, value, "a whole number");
    return value.get<int64_t>();
  }
  int64_t integer(const char* key, int64_t otherwise) const {
    return find(key) ? integer(key) : otherwise;
  }
  double number(const char* key) const {
    const Json& value = required(key, "a number");
    if (!value.is_number()) mistyped(key, value, "a number");
    return value.get<double>();
  }
  std::string text(const char* key) const {
    const Json& value = required(key, "a text");
    if (!value.is_string()) mistyped(key, value, "a text");
    return value.get<std::string>();
  }
  bool flag(const char* key, bool otherwise = false) const {
    const Json* value = find(key);
    if (value && !value->is_boolean()) mistyped(key, *value, "true or false");
    return value ? value->get<bool>() : otherwise;
  }

  /// A token id or a list of them; empty when missing.
  std::vector<TokenId> token_ids(const char* key) const {
    std::vector<TokenId> ids;
    const Json* value = find(key);
    if (!value) return ids;
    for (const Json& each : value->is_array() ? *value : Json::array({*value})) {
      if (!each.is_number_integer() || each.get<int64_t>() < 0 || each.get<int64_t>() > kMaxSize)
        mistyped(key, *value, "a token id or a list of token ids");
      ids.push_back(each.get<TokenId>());
    }
    return ids;
  }

  [[noreturn]] void mistyped(const char* key, const Json& value, const char* expected) const {
    fail(fmt::format("'{}' is {}, expected {}", key, json_text(value), expected));
  }

 private:
  const Json& required(const char* key, const char* expected) const {
    const Json* value = find(key);
    if (!value) fail(fmt::format("'{}' is missing, expected {}", key, expected));
    return *value;
  }

  std::filesystem::path path_;
  Json root_;
};

}  // namespace medusa
