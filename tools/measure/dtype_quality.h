// How far a model is from itself in another dtype: its predictions along texts that it wrote in
// float32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Predictions of the same tokens by a reference and by another, summed over answers that the
/// reference wrote greedily.
class LogitDistance {
 public:
  void begin_answer();

  /// The next predictions of the answer.
  /// @param reference, other  [n, V] logits on the CPU.
  /// @param tokens            [n] what follows each row.
  void add(const at::Tensor& reference, const at::Tensor& other, std::span<const TokenId> tokens);

  int64_t answers() const { return static_cast<int64_t>(parted_.size()); }
  int64_t positions() const { return positions_; }
  /// Share of the tokens that the other puts first, too.
  double same_token() const { return share(same_); }
  /// Mean KL(reference ‖ other), nats.
  double kl() const { return share(kl_); }
  /// Of the tokens.
  double reference_perplexity() const;
  double perplexity() const;
  /// Answers whose greedy text the other writes, too: it would read the reference's own tokens up
  /// to where they part.
  int64_t same_texts() const;
  /// Of each other answer: by how much the reference's logit of its own token is above that of the
  /// other's token where they part, ascending.
  std::vector<double> gaps() const;

 private:
  double share(double sum) const { return sum / static_cast<double>(positions_); }

  int64_t positions_ = 0;
  double same_ = 0, kl_ = 0, reference_loss_ = 0, loss_ = 0;
  std::vector<bool> parted_;  // of each answer
  std::vector<double> gaps_;
};

struct DtypeQuality {
  std::string dtype;
  std::string kernels;     // which code computed
  std::string cannot_run;  // why there is nothing else; empty
  LogitDistance distance;
};

struct DtypeComparison {
  std::vector<DtypeQuality> rows;
  bool complete = true;  // false: interrupted, only the answers so far
};

/// Answers the questions greedily in float32 and has each dtype predict these texts. Holds two
/// models at a time. Ctrl-C ends it early, with the answers that were whole.
/// @param limit  only the first so many questions; 0: all.
/// @throws UserError  no question fits; float32 cannot run;
///                    interrupted before anything was compared.
DtypeComparison compare_dtypes(const RunConfig& config, const std::vector<DtypeKind>& dtypes,
                               const std::vector<Prompt>& questions, int64_t limit);

/// A table for people.
std::string dtype_quality_text(const DtypeComparison& comparison);

/// {"dtypes": [{"dtype", …}], "complete"}; no figure of a dtype without answers.
nlohmann::ordered_json dtype_quality_json(const DtypeComparison& comparison);

}  // namespace medusa
