// A settings struct from YAML and to YAML, by its list of fields (fields.h). Scalars are read with
// std::from_chars: yaml-cpp's own conversion reads 010 as 8 and yes as true.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/formats/yaml_file.h"

namespace medusa {

/// Reads one YAML mapping into a struct and rejects everything it does not know.
class FieldReader {
 public:
  /// @param path  dotted place of the mapping, e.g. "train.optimizer"; empty at the top.
  FieldReader(const YamlFile& file, const YAML::Node& node, std::string path);

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
      if constexpr (std::is_same_v<T, int64_t>)
        if (value > kMostOfSetting || value < -kMostOfSetting)
          fail(key, found,
               "'" + std::string(key) + "' is " + text + ", must be at most " +
                   std::to_string(kMostOfSetting) + " either way");
      if (rule.holds && !rule.holds(value))
        fail(key, found, "'" + std::string(key) + "' is " + text + ", must be " + rule.text);
    }
  }

  /// Whole numbers are added and multiplied without a thought of overflows.
  static constexpr int64_t kMostOfSetting = 1'000'000'000'000;

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

/// Writes a struct as YAML, every field with its value: what a run saves beside its artifacts.
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

}  // namespace medusa
