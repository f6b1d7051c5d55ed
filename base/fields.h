// A settings struct lists its fields once, in fields(); checks, --help, and reading and writing
// YAML (yaml_fields.h) all use that list.
//
//   struct OptimizerConfig {
//     double learning_rate = 1e-3;
//     template <typename Fields> void fields(Fields& f) {
//       f("learning_rate", learning_rate, "AdamW peak step size", greater_than(0.0));
//     }
//     void validate() const {}   // rules between fields only
//   };
//
// Field types: bool, int64_t, int32_t, uint64_t, double, std::string, std::optional and std::vector
// of these, an enum with an EnumNames specialization, and another struct with fields().
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace medusa {

/// A condition on one value, with the text that errors and --help show: "> 0". A field that is an
/// optional or a vector takes the rule of the values it holds.
template <typename T>
struct Rule {
  std::string text;
  std::function<bool(const T&)> holds;
};

std::string number_text(double value);  // 0.001, 40, 1e-05: the shortest that reads back

template <typename T>
Rule<T> greater_than(T low) {
  return {"> " + number_text(static_cast<double>(low)), [low](const T& x) { return x > low; }};
}
template <typename T>
Rule<T> at_least(T low) {
  return {">= " + number_text(static_cast<double>(low)), [low](const T& x) { return x >= low; }};
}
template <typename T>
Rule<T> between(T low, T high) {
  return {"from " + number_text(static_cast<double>(low)) + " to " +
              number_text(static_cast<double>(high)),
          [low, high](const T& x) { return x >= low && x <= high; }};
}

/// What a settings struct may add behind a field of its list: f("report_every", …).cosmetic(). Only
/// a listing keeps it.
class FieldMark {
 public:
  explicit FieldMark(bool* decides = nullptr) : decides_(decides) {}

  /// The field changes what a run shows or keeps, and not what it makes.
  void cosmetic() { decides_if(false); }
  /// The field changes what a run makes in this case alone: the rank of an output that has one.
  void decides_if(bool condition) {
    if (decides_ != nullptr) *decides_ = condition;
  }

 private:
  bool* decides_;
};

/// Specialize for each enum a config holds: `static constexpr std::array<std::pair<const char*, E>,
/// n> values`.
template <typename E>
struct EnumNames;

template <typename E>
std::string enum_name(E value) {
  for (const auto& [name, each] : EnumNames<E>::values)
    if (each == value) return name;
  return "?";
}

template <typename E>
std::string enum_choices() {
  std::string text;
  for (const auto& [name, each] : EnumNames<E>::values)
    text += (text.empty() ? "" : " | ") + std::string(name);
  return text;
}

namespace detail {

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

/// What a rule judges: the value, the value inside an optional, each value of a vector,
/// of any depth.
template <typename T>
struct RuleSubject {
  using type = T;
};
template <typename T>
struct RuleSubject<std::optional<T>> {
  using type = typename RuleSubject<T>::type;
};
template <typename T>
struct RuleSubject<std::vector<T>> {
  using type = typename RuleSubject<T>::type;
};
template <typename T>
using RuleFor = Rule<typename RuleSubject<T>::type>;

/// What a key may hold, for errors: "a whole number".
template <typename T>
std::string kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_enum_v<T>)
    return "one of " + enum_choices<T>();
  else if constexpr (std::is_integral_v<T>)
    return "a whole number";
  else
    return "a finite number";
}

template <typename T>
bool parse_scalar(const std::string& text, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = text;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    value = text == "true";
    return text == "true" || text == "false";
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [name, each] : EnumNames<T>::values)
      if (text == name) {
        value = each;
        return true;
      }
    return false;
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
    const size_t digits = text[0] == '-' ? 1 : 0;
    return text.size() == digits + 1 || text[digits] != '0';  // 010 is a slip, not a ten
  }
}

template <typename T>
std::string scalar_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return value;
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_enum_v<T>)
    return enum_name(value);
  else if constexpr (std::is_floating_point_v<T>)
    return number_text(value);
  else
    return std::to_string(value);
}

}  // namespace detail

/// One line of --help.
struct FieldHelp {
  std::string key;      // dotted: train.learning_rate
  std::string value;    // the default, as YAML
  std::string allowed;  // "> 0", "a | b", empty when anything goes
  std::string help;
  bool decides = true;  // false: changes nothing of what a run makes (FieldMark)
};

/// Collects what --help prints: keys, defaults and ranges.
class FieldLister {
 public:
  explicit FieldLister(std::string path = {}) : path_(std::move(path)) {}

  template <typename T>
  FieldMark operator()(const char* key, T& value, const char* help,
                       const detail::RuleFor<T>& rule = {}) {
    FieldHelp line{path_.empty() ? key : path_ + "." + key, {}, rule.text, help};
    if constexpr (detail::IsOptional<T>::value) {
      line.value = value ? detail::scalar_text(*value) : "null";
      if constexpr (std::is_enum_v<typename T::value_type>)
        line.allowed = enum_choices<typename T::value_type>();
    } else if constexpr (detail::IsVector<T>::value) {
      line.value = "[";
      for (const auto& each : value)
        line.value += (line.value.size() > 1 ? ", " : "") + detail::scalar_text(each);
      line.value += "]";
    } else {
      line.value = detail::scalar_text(value);
      if constexpr (std::is_enum_v<T>) line.allowed = enum_choices<T>();
    }
    return FieldMark(&lines_.emplace_back(std::move(line)).decides);
  }

  template <typename T>
  void section(const char* key, T& value, const char* /*help*/) {
    FieldLister inner(path_.empty() ? key : path_ + "." + key);
    value.fields(inner);
    lines_.insert(lines_.end(), inner.lines_.begin(), inner.lines_.end());
  }

  const std::vector<FieldHelp>& lines() const { return lines_; }

 private:
  std::string path_;
  std::vector<FieldHelp> lines_;
};

/// Holds a struct to the rules of its list: for structs that were filled by code.
class FieldChecker {
 public:
  explicit FieldChecker(std::string path) : path_(std::move(path)) {}

  template <typename T>
  FieldMark operator()(const char* key, T& value, const char* /*help*/,
                       const detail::RuleFor<T>& rule = {}) {
    if (rule.holds) check(key, value, rule);
    return FieldMark();
  }

  template <typename T>
  void section(const char* key, T& value, const char* /*help*/) {
    FieldChecker inner(place(key));
    value.fields(inner);
    value.validate();
  }

 private:
  template <typename T>
  void check(const char* key, const T& value, const detail::RuleFor<T>& rule) const {
    if constexpr (detail::IsOptional<T>::value) {
      if (value) check(key, *value, rule);
    } else if constexpr (detail::IsVector<T>::value) {
      for (const auto& each : value) check(key, each, rule);
    } else if (!rule.holds(value)) {
      fail(key, detail::scalar_text(value), rule.text);
    }
  }

  std::string place(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& found,
                         const std::string& allowed) const;

  std::string path_;
};

/// @param path  what messages call the struct: "generate".
/// @throws UserError  a value outside its range, or values that do not go together.
template <typename Config>
void check_config(Config config, const std::string& path) {
  FieldChecker checker(path);
  config.fields(checker);
  config.validate();
}

/// The known word nearest to a misspelt one; empty if none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace medusa
