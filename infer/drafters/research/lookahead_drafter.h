// Lookahead decoding: a window of Jacobi trajectories runs beside the text and leaves n-grams in a
// pool; those that begin with the root are the candidates. Fu et al., "Break the Sequential
// Dependency of LLM Inference Using Lookahead Decoding" (arXiv:2402.02057).
//
// Differences from the reference implementation: the window starts filled with random tokens of the
// prompt instead of growing for N - 2 steps; the n-grams of prompt and answer are always in the
// pool; candidates with the same beginning share rows; any rule may judge them, and a draft that is
// accepted whole is followed by the target's own token.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fields.h"
#include "base/token.h"
#include "infer/drafter.h"

namespace medusa {

struct LookaheadConfig {
  int32_t window = 7;
  int32_t level = 5;
  int32_t guesses = 7;

  template <typename Fields>
  void fields(Fields& f) {
    f("window", window, "W, places ahead of the text that are drafted in parallel", between(1, 60));
    f("level", level, "N, tokens of an n-gram; the window keeps its last N - 1 passes",
      between(2, 32));
    f("guesses", guesses, "G, n-grams tried at the same time and kept per first token",
      between(1, 60));
  }
  /// @throws UserError  a step would take more than 64 rows.
  void validate() const;
};

/// N-grams by their first token, the least recently used ones forgotten.
class NgramPool {
 public:
  /// @param per_token  n-grams kept for each first token; at least 1.
  explicit NgramPool(size_t per_token) : per_token_(per_token) {}

  /// Makes the n-gram the most recent one of its first token.
  /// @param ngram  at least two tokens.
  void add(std::span<const TokenId> ngram);

  /// Lists what follows a token: the n-grams that begin with it, without it, the oldest first.
  const std::deque<std::vector<TokenId>>& after(TokenId token) const;

 private:
  size_t per_token_;
  std::unordered_map<TokenId, std::deque<std::vector<TokenId>>> tails_;
};

/// Row j, column i of the window is pass j's token for the place i + j after the root; row 0,
/// column 0 is the root itself. A token sees the root, row 0 up to its column, and its own column
/// in the rows before it: the parent of (j, i) is (j - 1, i), and that of (0, i) is (0, i - 1).
class LookaheadDrafter : public Drafter {
 public:
  explicit LookaheadDrafter(const LookaheadConfig& config);

  void begin(std::span<const TokenId> prompt) override { read(prompt); }

  /// The pool's n-grams as a tree, and behind num_verify the window, where it fits whole.
  CandidateTree propose(const DraftContext& context, const Random& random) override;

  /// Takes the target's answers to the window's last row, which complete W n-grams and are the
  /// window's next row; its first row goes.
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  void read(std::span<const TokenId> tokens);
  void fill_window(std::span<const TokenId> text, const Random& random);
  void add_window(CandidateTree& tree);

  TokenId& at(int32_t row, int32_t column) {
    return window_[static_cast<size_t>(row * config_.window + column)];
  }
  int32_t num_rows() const { return config_.level - 1; }

  LookaheadConfig config_;
  NgramPool pool_;
  std::vector<TokenId> text_;      // the last N - 1 tokens that were read, or fewer
  int64_t num_read_ = 0;           // tokens
  std::vector<TokenId> window_;    // [N - 1, W]; empty: not started
  std::vector<int32_t> last_row_;  // [W] nodes of the window's last row; empty: it did not fit
};

}  // namespace medusa
