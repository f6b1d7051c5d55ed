// Reads a request's JSON field by field, and says afterwards which fields nobody asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace medusa {

// Of each object of a body: one whose keys are in order is read in time by their square.
inline constexpr size_t kMostKeys = 512;

/// Every function throws ApiError 400, which names the field, for a value of another type or
/// outside its range. A field that is null counts as absent.
///
/// Thread safety: none.
class RequestFields {
 public:
  /// @param json   kept by reference; must be an object.
  /// @param place  of the object in the request, for messages: "" or "medusa.".
  explicit RequestFields(const nlohmann::json& json, std::string place = {});

  bool has(const std::string& name);
  /// Says whether a field is there, null or not, without reading it.
  bool contains(const std::string& name) const { return json_.contains(name); }
  /// Names a field with its place in the request: "medusa.regex".
  std::string name_of(const std::string& name) const { return place_ + name; }
  /// The value of a field that is there.
  const nlohmann::json& at(const std::string& name) { return json_.at(name); }

  std::optional<int64_t> integer(const std::string& name, int64_t least, int64_t most);
  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  /// A text, or a list of at most so many texts; none may be empty, or have more bytes than this.
  std::vector<std::string> texts(const std::string& name, size_t most, size_t longest);
  /// A list of ids below vocab_size; may be empty.
  std::vector<TokenId> token_ids(const std::string& name, int64_t vocab_size);
  std::optional<RequestFields> object(const std::string& name);
  /// Says whether an object is there that is for others to read: a schema, for example.
  bool has_object(const std::string& name);
  /// An object further inside of the request. Its warnings are those of this one.
  /// @param object  kept by reference.
  RequestFields within(const nlohmann::json& object, std::string place) const;
  /// A field that this server cannot follow may be there with the value that asks for nothing.
  void expect_unused(const std::string& name, const nlohmann::json& harmless);
  /// A field that changes nothing in the answer, e.g. "user".
  void ignore(std::initializer_list<const char*> names);
  /// A field that asks for nothing with one of these values. With any other it is unknown.
  void ignore_where(const std::string& name, std::initializer_list<nlohmann::json> values);

  /// Warns of all fields of this object, empty ones aside, that nobody has asked for.
  void warn_of_unknown();
  /// @param why  what it is, and that it is ignored.
  void warn(const std::string& name, std::string_view why);
  /// The warnings of the whole request so far, for the answer.
  const std::vector<std::string>& warnings() const { return *warnings_; }

  [[noreturn]] void refuse(const std::string& name, std::string_view expected) const;

 private:
  const nlohmann::json& json_;
  std::string place_;
  std::set<std::string> known_;
  std::shared_ptr<std::vector<std::string>> warnings_ =
      std::make_shared<std::vector<std::string>>();  // of all objects of the request
};

/// Parses a request's body.
/// @throws ApiError  400: it is not JSON, not UTF-8, nested too deeply, no object, or has a key
///                   twice or an object of more than kMostKeys.
nlohmann::json parse_body(std::string_view body);

/// A request's body with the keys of its objects in the client's order, which schemas and the
/// inputs of calls keep. It is parsed when it is first asked for; most requests never do.
///
/// Thread safety: none.
class OrderedBody {
 public:
  /// @param text  JSON that has been parsed before; must outlive this.
  explicit OrderedBody(std::string_view text) : text_(text) {}

  const nlohmann::ordered_json& json() {
    if (json_.is_null()) json_ = nlohmann::ordered_json::parse(text_);
    return json_;
  }

 private:
  std::string_view text_;
  nlohmann::ordered_json json_;
};

}  // namespace medusa
