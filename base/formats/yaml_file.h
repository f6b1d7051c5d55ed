// A YAML file together with the command line's --set overrides; remembers where each value came
// from.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace medusa {

class YamlFile {
 public:
  /// @param overrides  "section.key=value" texts of --set; the value is YAML.
  /// @throws UserError  the file cannot be read, is not YAML, or an override has no '='.
  explicit YamlFile(const std::filesystem::path& path,
                    const std::vector<std::string>& overrides = {});

  /// A YAML text that is not a file; name stands in messages.
  static YamlFile from_text(const std::string& text, const std::string& name,
                            const std::vector<std::string>& overrides = {});

  const YAML::Node& root() const { return root_; }

  /// "configs/demo.yaml:14", or "--set train.epochs=x" for a value from the command line.
  /// @param path  dotted place of the value.
  std::string place(const std::string& path, const YAML::Node& node) const;

 private:
  YamlFile() = default;
  void load(const std::string& text, const std::vector<std::string>& overrides);

  std::string name_;
  YAML::Node root_;
  std::map<std::string, std::string> overridden_;  // dotted path -> the --set text
};

}  // namespace medusa
