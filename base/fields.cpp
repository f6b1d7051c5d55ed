#include "base/fields.h"

#include <algorithm>
#include <set>

namespace medusa {

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  (void)error;  // 32 characters hold every double
  return {buffer, end};
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = 3;  // further than this is no help
  for (const auto& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);  // Levenshtein distance, one row at a time
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t above = row[j];
        const size_t replaced = diagonal + (word[i - 1] != candidate[j - 1] ? 1 : 0);
        row[j] = std::min({above + 1, row[j - 1] + 1, replaced});
        diagonal = above;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

FieldReader::FieldReader(const YamlFile& file, YAML::Node node, std::string path)
    : file_(file), node_(std::move(node)), path_(std::move(path)) {
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
  const bool says_what_to_do = message.find("; ") != std::string::npos;
  throw UserError(file_.place(key.empty() ? path_ : place(key), at) + ": " + message +
                  (says_what_to_do ? "" : "; correct or remove it"));
}

}  // namespace medusa
