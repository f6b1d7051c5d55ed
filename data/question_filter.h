// Drops questions that teach nothing new: empty, degenerate, or nearly the same as an earlier one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace medusa {

/// How many questions went where; they add up to how many came.
struct QuestionCounts {
  int64_t kept = 0;
  int64_t empty = 0;       // fewer than three words and twelve letters
  int64_t degenerate = 0;  // a loop of words, broken characters, or template markers
  int64_t duplicate = 0;   // nearly the same as one that was kept
};

/// Takes questions one after the other; what it decides depends on those before and nothing else.
///
/// Two questions are nearly the same when their sets of five-character pieces (in lower case, words
/// joined by single spaces) have a Jaccard similarity of at least 0.7. Candidates are found by
/// MinHash with 16 bands of 4 rows (Broder, 1997): a pair just at the threshold is noticed with a
/// probability of 0.99, an equal pair always.
///
/// Thread safety: none.
class QuestionFilter {
 public:
  enum class Verdict { Kept, Empty, Degenerate, Duplicate };

  Verdict add(std::string_view question);

  const QuestionCounts& counts() const { return counts_; }

 private:
  Verdict judge(std::string_view question);
  bool is_known(const std::vector<uint64_t>& shingles);

  QuestionCounts counts_;
  std::vector<std::vector<uint64_t>> kept_;                  // sorted shingle hashes of each
  std::unordered_map<uint64_t, std::vector<size_t>> bands_;  // hash of a band -> indices in kept_
};

}  // namespace medusa
