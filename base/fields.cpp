#include "base/fields.h"

#include <algorithm>

namespace medusa {

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  (void)error;  // 32 characters hold every double
  return {buffer, end};
}

namespace {

/// The shortest known word that goes on where a typed one ends: --output for --out. Empty: none, or
/// too little was typed to tell.
std::string begun_word(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kFewestLetters = 2;
  const size_t begin = std::min(word.find_first_not_of('-'), word.size());
  if (word.size() - begin < kFewestLetters) return "";
  std::string best;
  for (const std::string& candidate : known)
    if (candidate.size() > word.size() && candidate.starts_with(word) &&
        (best.empty() || candidate.size() < best.size()))
      best = candidate;
  return best;
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best = begun_word(word, known);
  if (!best.empty()) return best;
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

void FieldChecker::fail(const std::string& key, const std::string& found,
                        const std::string& allowed) const {
  throw UserError(place(key) + " is " + found + ", expected " + allowed + "; correct it");
}

}  // namespace medusa
