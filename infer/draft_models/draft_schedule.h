// How far a draft model runs ahead. Facts: Hugging Face transformers' assisted generation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace medusa {

enum class DraftScheduleKind {
  Constant,            // num_draft tokens each step
  Heuristic,           // two more after a step in which all stood, else one less; never below one
  HeuristicTransient,  // the same, from num_draft again for each text
  Confidence,          // until a token is less probable than a threshold; at most num_draft
};

template <>
struct EnumNames<DraftScheduleKind> {
  static constexpr auto values = std::to_array<std::pair<const char*, DraftScheduleKind>>(
      {{"constant", DraftScheduleKind::Constant},
       {"heuristic", DraftScheduleKind::Heuristic},
       {"heuristic_transient", DraftScheduleKind::HeuristicTransient},
       {"confidence", DraftScheduleKind::Confidence}});
};

struct DraftScheduleConfig {
  DraftScheduleKind kind = DraftScheduleKind::Confidence;
  int32_t num_draft = 6;
  double threshold = 0.4;
};

/// The threshold that would have been best on drafts seen so far: a candidate wrongly run costs
/// one, a right one wrongly given up three, each as a share of all wrong and all right ones
/// (argmin of false positive rate + 3 · false negative rate).
/// @param probabilities  of drafted tokens under the draft model.
/// @param right          whether each stood; both kinds occur.
double best_threshold(std::span<const double> probabilities, const std::vector<bool>& right);

/// The schedule of one text, except for `heuristic`, of which one object serves all texts.
///
/// Thread safety: none.
class DraftSchedule {
 public:
  explicit DraftSchedule(const DraftScheduleConfig& config)
      : config_(config), length_(config.num_draft), threshold_(config.threshold) {}

  /// Most tokens to draft in the next step.
  int32_t length() const { return length_; }

  /// Says whether to go on behind a token that was just drafted. That token stays a candidate: to
  /// take back an improbable one after it was drawn would change the distribution of what is
  /// accepted.
  bool goes_on(double probability) const {
    return config_.kind != DraftScheduleKind::Confidence || probability >= threshold_;
  }

  /// Takes what a step's drafted chain came to.
  /// @param probabilities  of its tokens
  /// @param accepted       how many of them stood
  void observe(std::span<const double> probabilities, size_t accepted);

  double threshold() const { return threshold_; }

 private:
  void adapt_threshold(std::span<const double> probabilities, size_t accepted);

  DraftScheduleConfig config_;
  int32_t length_;
  double threshold_;
  std::vector<double> probabilities_;  // of verified tokens of this text
  std::vector<bool> right_;
};

}  // namespace medusa
