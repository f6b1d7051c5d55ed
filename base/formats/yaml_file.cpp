#include "base/formats/yaml_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/shown_text.h"
#include "base/utf8.h"

namespace medusa {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // the library needs 500 times as much memory

/// Whether a line begins or ends a document. No scalar has such a line (YAML 1.2.2, §9.1.2).
bool is_marker(std::string_view line) {
  return (line.starts_with("---") || line.starts_with("...")) &&
         (line.size() == 3 || std::string_view(" \t\r").find(line[3]) != std::string_view::npos);
}

/// The library reads the first document and leaves others out.
std::optional<size_t> line_of_second_document(std::string_view text) {
  bool has_begun = false, is_behind = false;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_marker(line)) {
      is_behind |= has_begun;
      has_begun |= line.starts_with("---");
      line.remove_prefix(3);
    }
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line[0] == '#' || (line[0] == '%' && (is_behind || !has_begun))) continue;
    if (is_behind) return number;
    has_begun = true;
  }
  return std::nullopt;
}

/// Refuses what the library takes, and nobody who writes settings means: a tag (it leaves the value
/// out where it does not know the tag), and an alias inside the value that its anchor names.
class MeaningfulOnly : public YAML::EventHandler {
 public:
  explicit MeaningfulOnly(const std::string& name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (std::ranges::find(open_, anchor) != open_.end())
      fail(mark, "an alias inside the value that it stands for, expected a value that ends");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string&) override {
    check_tag(mark, tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open_.push_back(anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    OnSequenceStart(mark, tag, anchor, style);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  /// @param tag  "?" of a plain value, "!" of one in quotes.
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.size() > 1) fail(mark, "a value with the tag '" + tag + "', expected none");
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw UserError(fmt::format("{}:{}: {}; remove it", name_, mark.line + 1, shown_in_line(what)));
  }

  const std::string& name_;
  std::vector<YAML::anchor_t> open_;  // of the values around; 0: has none
};

YAML::Node parse(const std::string& text, const std::string& name) {
  if (!is_valid_utf8(text))
    throw UserError(fmt::format(
        "{}: not text in UTF-8, expected YAML in it; save the file in this encoding", name));
  try {
    if (const auto line = line_of_second_document(text))
      throw UserError(fmt::format(
          "{}:{}: a second document begins behind '---' or '...', expected one; remove it or "
          "give it a file of its own",
          name, *line));
    std::istringstream stream(text);
    MeaningfulOnly checked(name);
    YAML::Parser(stream).HandleNextDocument(checked);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw UserError(fmt::format("{}:{}: not valid YAML ({}); mend the line", name,
                                error.mark.line + 1, error.msg));
  }
}

void set(YAML::Node node, const std::string& path, const YAML::Node& value) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos) {
    node[path] = value;
    return;
  }
  const std::string section = path.substr(0, dot);
  if (!node[section] || node[section].IsNull()) node[section] = YAML::Node(YAML::NodeType::Map);
  if (!node[section].IsMap())
    throw UserError(
        fmt::format("--set {}: '{}' is a value, expected a section before a dot, as in "
                    "train.epochs=2; correct the key (--help lists them)",
                    path, section));
  set(node[section], path.substr(dot + 1), value);
}

}  // namespace

YamlFile::YamlFile(const std::filesystem::path& path, const std::vector<std::string>& overrides)
    : name_(path.string()) {
  load(read_file(path, kMostBytes), overrides);
}

YamlFile YamlFile::from_text(const std::string& text, const std::string& name,
                             const std::vector<std::string>& overrides) {
  YamlFile file;
  file.name_ = name;
  file.load(text, overrides);
  return file;
}

void YamlFile::load(const std::string& text, const std::vector<std::string>& overrides) {
  root_ = parse(text, name_);
  if (root_.IsNull()) root_ = YAML::Node(YAML::NodeType::Map);
  for (const std::string& each : overrides) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format(
          "--set {}: has no key before a '=', expected section.key=value; write it as in "
          "--set train.epochs=2",
          each));
    const std::string path = each.substr(0, equals);
    if (!root_.IsMap())
      throw UserError(
          fmt::format("{}:1: expected a mapping of keys to values; correct the file", name_));
    set(root_, path, parse(each.substr(equals + 1), "--set " + each));
    overridden_[path] = "--set " + each;
  }
}

std::string YamlFile::place(const std::string& path, const YAML::Node& node) const {
  for (const auto& [set_path, text] : overridden_)
    if (path == set_path || path.starts_with(set_path + ".")) return text;
  for (const auto& [set_path, text] : overridden_)  // a section that one of them began
    if (node.Mark().is_null() && set_path.starts_with(path + ".")) return text;
  return fmt::format("{}:{}", name_, node.Mark().line + 1);
}

}  // namespace medusa
