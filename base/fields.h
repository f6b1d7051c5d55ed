// A settings struct lists its fields once, in fields(); reading YAML, rejecting what is unknown,
// writing the settings back and --help all use that list.
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
// of these, an enum with an EnumNames specialisation, and another struct with fields().
// Scalars are read with std::from_chars: yaml-cpp's own conversion reads 010 as 8 and yes as true.
#pragma once

#include <yaml-cpp/yaml.h>

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
#include "base/formats/yaml_file.h"

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

/// Specialise for each enum a config holds: `static constexpr std::array<std::pair<const char*, E>,
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

/// Reads one YAML mapping into a struct and rejects everything it does not know.
class FieldReader {
 public:
  /// @param path  dotted place of the mapping, e.g. "train.optimizer"; empty at the top.
  FieldReader(const YamlFile& file, YAML::Node node, std::string path);

  template <typename T>
  FieldMark operator()(const char* key, T& value, const char* /*help*/,
                       const detail::RuleFor<T>& rule = {}) {
    known_.emplace_back(key);
    const YAML::Node found = std::as_const(node_)[key];
    if (found) read(key, found, value, rule);  // else the default written in the struct stays
    return FieldMark();
  }

  /// A nested struct.
  template <typename T>
  void section(const char* key, T& value, const char* /*help*/) {
    known_.emplace_back(key);
    const YAML::Node found = std::as_const(node_)[key];
    if (!found) return;
    FieldReader reader(file_, found, place(key));
    value.fields(reader);
    reader.reject_unknown();
    value.validate();
  }

  /// Call after fields(): any key not visited is an error.
  void reject_unknown() const;

 private:
  template <typename T>
  void read(const char* key, const YAML::Node& found, T& value,
            const detail::RuleFor<T>& rule) const {
    if constexpr (detail::IsOptional<T>::value) {
      if (found.IsNull()) {
        value.reset();
        return;
      }
      read(key, found, value.emplace(), rule);
    } else if constexpr (detail::IsVector<T>::value) {
      if (!found.IsSequence())
        fail(key, found, "'" + std::string(key) + "' must be a list, like [a, b]");
      value.clear();
      for (const auto& entry : found) read(key, entry, value.emplace_back(), rule);
    } else {
      if (!found.IsScalar()) fail(key, found, "'" + std::string(key) + "' must be a single value");
      const std::string& text = found.Scalar();
      if (!detail::parse_scalar(text, value))
        fail(key, found,
             "'" + std::string(key) + "' is '" + text + "', must be " + detail::kind_of<T>());
      if (rule.holds && !rule.holds(value))
        fail(key, found, "'" + std::string(key) + "' is " + text + ", must be " + rule.text);
    }
  }

  std::string place(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  [[noreturn]] void fail(const std::string& key, const YAML::Node& at,
                         const std::string& message) const;

  const YamlFile& file_;
  YAML::Node node_;
  std::string path_;
  std::vector<std::string> known_;
};

/// Writes a struct as YAML, every field with its value: what a run saves beside its artefacts.
class FieldWriter {
 public:
  template <typename T>
  FieldMark operator()(const char* key, T& value, const char* /*help*/,
                       const detail::RuleFor<T>& = {}) {
    emitter_ << YAML::Key << key << YAML::Value;
    if constexpr (detail::IsOptional<T>::value) {
      if (value)
        emitter_ << detail::scalar_text(*value);
      else
        emitter_ << YAML::Null;
    } else if constexpr (detail::IsVector<T>::value) {
      emitter_ << YAML::Flow << YAML::BeginSeq;
      for (const auto& each : value) emitter_ << detail::scalar_text(each);
      emitter_ << YAML::EndSeq;
    } else {
      emitter_ << detail::scalar_text(value);
    }
    return FieldMark();
  }

  template <typename T>
  void section(const char* key, T& value, const char* /*help*/) {
    emitter_ << YAML::Key << key << YAML::Value << YAML::BeginMap;
    value.fields(*this);
    emitter_ << YAML::EndMap;
  }

  YAML::Emitter& emitter() { return emitter_; }

 private:
  YAML::Emitter emitter_;
};

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

/// Reads the whole file into a struct: unknown, repeated, mistyped and out-of-range keys are
/// errors.
/// @throws UserError
template <typename Config>
Config read_config(const YamlFile& file) {
  Config config;
  FieldReader reader(file, file.root(), "");
  config.fields(reader);
  reader.reject_unknown();
  config.validate();
  return config;
}

/// The struct as YAML text; read_config of it gives an equal struct.
template <typename Config>
std::string write_config(Config config) {
  FieldWriter writer;
  writer.emitter() << YAML::BeginMap;
  config.fields(writer);
  writer.emitter() << YAML::EndMap;
  return std::string(writer.emitter().c_str()) + "\n";
}

/// The known word nearest to a misspelt one; empty if none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace medusa
