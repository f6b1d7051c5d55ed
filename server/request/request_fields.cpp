#include "server/request/request_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/formats/object_keys.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

constexpr size_t kLongestQuote = 60;  // bytes of a wrong value, or of a name, in a message
constexpr size_t kMostWarnings = 32;  // of a request: each of its objects may give some

/// A value as a message quotes it, cut where it is long.
std::string quoted(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  std::string out = json_text(value);
  if (out.size() > kLongestQuote) out = out.substr(0, kLongestQuote) + "…";
  return out;
}

/// A field's name, cut where it is long.
std::string shown_name(const std::string& name) {
  if (name.size() <= kLongestQuote) return name;
  return repair_utf8(std::string_view(name).substr(0, kLongestQuote)) + "…";
}

/// Finds the place of a number that no double holds. It stands in JSON's grammar, but the parser
/// ends there as at what is no JSON.
class FindsLargeNumber : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return pass(); }
  bool boolean(bool) override { return pass(); }
  bool number_integer(number_integer_t) override { return pass(); }
  bool number_unsigned(number_unsigned_t) override { return pass(); }
  bool number_float(number_float_t, const string_t&) override { return pass(); }
  bool string(string_t&) override { return pass(); }
  bool binary(binary_t&) override { return pass(); }
  bool start_object(size_t) override { return enter({.key = "", .index = -1}); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter({.key = "", .index = 0}); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    places_.back().key = name;
    return true;
  }
  bool parse_error(size_t, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOverflow = 406;  // the library's number of this error
    if (error.id == kOverflow) number_ = token;
    return false;
  }

  /// Its text; empty: there is none.
  const std::string& number() const { return number_; }
  /// Where it stands: "medusa.epsilon".
  std::string place() const {
    std::string out;
    for (const Place& each : places_)
      out += each.index >= 0 ? fmt::format("[{}]", each.index)
                             : fmt::format("{}{}", out.empty() ? "" : ".", each.key);
    return out;
  }

 private:
  struct Place {
    std::string key;  // of an object: the last one
    int64_t index;    // of a list: of the value that comes; -1: an object
  };
  bool enter(Place place) {
    places_.push_back(std::move(place));
    return true;
  }
  bool leave() {
    places_.pop_back();
    return pass();
  }
  bool pass() {
    if (!places_.empty() && places_.back().index >= 0) ++places_.back().index;
    return true;
  }

  std::vector<Place> places_;
  std::string number_;
};

/// Its place is not the error's field, which the log of requests keeps: a client's own keys may
/// stand in it.
void refuse_large_number(std::string_view body) {
  FindsLargeNumber found;
  nlohmann::json::sax_parse(body, &found);
  if (found.number().empty()) return;
  const std::string place = found.place();
  throw ApiError(400,
                 fmt::format("{} is {}, expected a number that a double holds, of at most 1.8e308; "
                             "correct it",
                             place.empty() ? "the body" : place.substr(0, kLongestQuote),
                             found.number().substr(0, kLongestQuote)));
}

}  // namespace

RequestFields::RequestFields(const nlohmann::json& json, std::string place)
    : json_(json), place_(std::move(place)) {}

void RequestFields::refuse(const std::string& name, std::string_view expected) const {
  throw ApiError(400,
                 fmt::format("{}{} is {}, expected {}; correct it or leave it out", place_, name,
                             json_.contains(name) ? quoted(json_[name]) : "absent", expected),
                 place_ + name);
}

bool RequestFields::has(const std::string& name) {
  known_.insert(name);
  const auto found = json_.find(name);
  return found != json_.end() && !found->is_null();
}

std::optional<int64_t> RequestFields::integer(const std::string& name, int64_t least,
                                              int64_t most) {
  if (!has(name)) return std::nullopt;
  const nlohmann::json& value = json_[name];
  const bool fits =
      value.is_number_integer() &&
      !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) &&
      value.get<int64_t>() >= least && value.get<int64_t>() <= most;
  if (!fits) refuse(name, fmt::format("a whole number from {} to {}", least, most));
  return value.get<int64_t>();
}

std::optional<double> RequestFields::number(const std::string& name, double least, double most) {
  if (!has(name)) return std::nullopt;
  const nlohmann::json& value = json_[name];
  const bool fits = value.is_number() && std::isfinite(value.get<double>()) &&
                    value.get<double>() >= least && value.get<double>() <= most;
  if (!fits) refuse(name, fmt::format("a number from {} to {}", least, most));
  return value.get<double>();
}

std::optional<bool> RequestFields::boolean(const std::string& name) {
  if (!has(name)) return std::nullopt;
  if (!json_[name].is_boolean()) refuse(name, "true or false");
  return json_[name].get<bool>();
}

std::optional<std::string> RequestFields::text(const std::string& name) {
  if (!has(name)) return std::nullopt;
  if (!json_[name].is_string()) refuse(name, "a text");
  return json_[name].get<std::string>();
}

std::vector<std::string> RequestFields::texts(const std::string& name, size_t most,
                                              size_t longest) {
  if (!has(name)) return {};
  const nlohmann::json& value = json_[name];
  const nlohmann::json list = value.is_array() ? value : nlohmann::json::array({value});
  const std::string expected =
      fmt::format("a text or a list of at most {} texts, each of 1 to {} bytes", most, longest);
  if (list.size() > most) refuse(name, expected);
  std::vector<std::string> out;
  for (const nlohmann::json& each : list) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty() ||
        each.get_ref<const std::string&>().size() > longest)
      refuse(name, expected);
    out.push_back(each.get<std::string>());
  }
  return out;
}

std::vector<TokenId> RequestFields::token_ids(const std::string& name, int64_t vocab_size) {
  if (!has(name)) return {};
  const std::string expected = fmt::format("a list of token ids from 0 to {}", vocab_size - 1);
  if (!json_[name].is_array()) refuse(name, expected);
  std::vector<TokenId> out;
  for (const nlohmann::json& id : json_[name]) {
    if (!id.is_number_integer() || id < 0 || id >= vocab_size) refuse(name, expected);
    out.push_back(id.get<TokenId>());
  }
  return out;
}

std::optional<RequestFields> RequestFields::object(const std::string& name) {
  if (!has(name)) return std::nullopt;
  if (!json_[name].is_object()) refuse(name, "an object");
  return within(json_[name], place_ + name + ".");
}

bool RequestFields::has_object(const std::string& name) {
  if (!has(name)) return false;
  if (!json_[name].is_object()) refuse(name, "an object");
  return true;
}

RequestFields RequestFields::within(const nlohmann::json& object, std::string place) const {
  RequestFields out(object, std::move(place));
  out.warnings_ = warnings_;
  return out;
}

void RequestFields::expect_unused(const std::string& name, const nlohmann::json& harmless) {
  if (!has(name) || json_[name] == harmless || json_[name].empty()) return;
  throw ApiError(400,
                 fmt::format("{}{} is {}, which this server cannot follow, expected it to be {} or "
                             "absent; leave it out",
                             place_, name, quoted(json_[name]), json_text(harmless)),
                 place_ + name, "unsupported_parameter");
}

void RequestFields::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) known_.insert(name);
}

void RequestFields::ignore_where(const std::string& name,
                                 std::initializer_list<nlohmann::json> values) {
  for (const nlohmann::json& value : values)
    if (has(name) && json_[name] == value) return;
  known_.erase(name);
}

void RequestFields::warn_of_unknown() {
  for (const auto& [name, value] : json_.items())
    if (!value.is_null() && !known_.contains(name))
      warn(shown_name(name), "unknown field, ignored");
}

void RequestFields::warn(const std::string& name, std::string_view why) {
  if (warnings_->size() < kMostWarnings)
    warnings_->push_back(fmt::format("{}{}: {}", place_, name, why));
  else if (warnings_->size() == kMostWarnings)
    warnings_->emplace_back("more fields are ignored");
}

nlohmann::json parse_body(std::string_view body) {
  const auto refuse = [](const char* found) -> nlohmann::json {
    throw ApiError(
        400, fmt::format("the body is {}, expected a JSON object in UTF-8; correct it", found));
  };
  if (nests_too_deeply(body)) return refuse("nested too deeply");
  if (body.find('\0') != std::string_view::npos) return refuse("not JSON");  // the parser's end
  nlohmann::json out = nlohmann::json::parse(body, nullptr, false);
  if (out.is_discarded()) {
    refuse_large_number(body);
    return refuse("not JSON");
  }
  if (!out.is_object()) return refuse("no object");
  const ObjectKeys keys = read_object_keys(body);
  if (keys.repeated)
    throw ApiError(400, fmt::format("the body has the key '{}' twice in one object, expected each "
                                    "once; leave one of them out",
                                    keys.repeated->substr(0, kLongestQuote)));
  if (keys.most > kMostKeys)
    throw ApiError(400, fmt::format("the body has an object of {} keys, expected at most {}; "
                                    "leave some out",
                                    keys.most, kMostKeys));
  return out;
}

}  // namespace medusa
