#include "base/yaml_fields.h"

#include <algorithm>
#include <set>

#include "base/shown_text.h"

namespace medusa {

FieldReader::FieldReader(const YamlFile& file, const YAML::Node& node, std::string path)
    : file_(file), node_(node), path_(std::move(path)) {
  if (node_.IsNull()) node_ = YAML::Node(YAML::NodeType::Map);  // a section without keys
  if (!node_.IsMap()) fail("", node_, "expected a mapping of keys to values");
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    const auto& key = entry.first.Scalar();
    if (!seen.insert(key).second) fail(key, entry.first, "key '" + key + "' is given twice");
  }
}

void FieldReader::reject_unknown() const {
  for (const auto& entry : node_) {
    const auto& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string message = "unknown key '" + key + "'";
    if (!path_.empty()) message += " in '" + path_ + "'";
    if (const auto close = nearest_word(key, known_); !close.empty())
      message += " (did you mean '" + close + "'?)";
    fail(key, entry.first, message);
  }
}

void FieldReader::fail(const std::string& key, const YAML::Node& at,
                       const std::string& message) const {
  throw UserError(file_.place(key.empty() ? path_ : place(key), at) + ": " +
                  shown_in_line(message) + "; correct or remove it");
}

}  // namespace medusa
