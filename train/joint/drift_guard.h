// Watches how far training has led the backbone from what it was, on samples fixed at the start:
// KL, perplexity, and whether its greedy answers are still the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token.h"
#include "data/dataset/dataset_reader.h"
#include "train/joint/joint_config.h"
#include "train/joint/tuned_llama.h"

namespace medusa {

struct Drift {
  double kl = 0;                   // mean over the watched answers' tokens, nats, from the backbone
                                   // as it was
  double perplexity = 1;           // of the watched answers
  double original_perplexity = 1;  // by the backbone as it was
  double greedy_match = 1;         // share of greedy answers that are the same, token for token
  int64_t positions = 0;           // answer tokens watched
  int64_t answers = 0;             // greedy answers

  /// For metrics.jsonl, names with units.
  std::vector<std::pair<std::string, double>> numbers() const;
};

/// Thread safety: none.
class DriftGuard {
 public:
  /// Computes what the backbone as it was says of the samples; the same for the same arguments, so
  /// that a resumed run judges as the unbroken one.
  /// @param samples  whose answers are watched; empty: nothing is.
  /// @param chunk    positions whose logits exist at one time.
  DriftGuard(const GuardConfig& config, const DatasetReader& dataset,
             const std::vector<int64_t>& samples, const TunedLlama& llama, int64_t chunk);

  bool watches() const { return answers_.texts.has_value(); }

  Drift measure(TunedLlama& llama) const;

  /// What a drift exceeds, for people: "KL 0.31 nats, at most 0.1 (train.joint.guard.max_kl)".
  /// Numbers that are not finite exceed everything.
  std::optional<std::string> exceeded(const Drift& drift) const;

 private:
  /// Texts and what the backbone as it was makes of them.
  struct Probe {
    std::optional<PackedTexts> texts;
    at::Tensor rows;              // [P] before each answer token
    std::vector<int32_t> tokens;  // [P] answer tokens
    std::vector<int64_t> counts;  // of each answer, together P
    at::Tensor states;            // [P, H] as it was
  };
  using Answers = std::vector<std::pair<std::vector<TokenId>, std::vector<TokenId>>>;
  Probe make_probe(const Answers& answers, const TunedLlama& llama) const;
  double perplexity(const Probe& probe, const at::Tensor& states, const at::Tensor& output) const;
  double greedy_match(TunedLlama& llama) const;

  const GuardConfig& config_;
  int64_t chunk_;
  Probe answers_, greedy_;
  double original_perplexity_ = 1;
};

}  // namespace medusa
