// Passes over one row of logits, vectorised for the machine they run on, and by several threads
// where some are idle (row_chunks.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/row_chunks.h"

namespace medusa {

/// The largest value and where it first stands; the row is not empty. A NaN is passed over. Too
/// short a pass for threads to help.
RowPeak row_peak(std::span<const float> row);

/// What softmax and entropy need of a row. The exponents x_i = (row[i] - max) · scale are rounded
/// to float, and e_i = exp(x_i) has a relative error below 3e-7; it is 0 where x_i < -87.
struct SoftmaxSums {
  float max = 0;
  double sum = 0;       // Σ e_i; not finite if the row is not
  double weighted = 0;  // Σ e_i · x_i

  /// ln Σ exp(row[i] · scale), less max · scale.
  double log_sum() const;
  /// Gives the entropy in nats.
  double entropy() const { return log_sum() - weighted / sum; }
};

/// @param threads  idle ones that help; null: none. So in RowWeights.
SoftmaxSums softmax_sums(std::span<const float> row, float scale, ThreadPool* threads = nullptr);

/// A token and its e_i: its probability, but for the sum.
struct Weighted {
  float weight = 0;
  int32_t id = 0;
};

/// The e_i of a row, and quick ways to the largest of them. Its memory is used again.
///
/// Thread safety: none.
class RowWeights {
 public:
  /// Takes another row; what was there is void.
  void set(std::span<const float> row, float scale, ThreadPool* threads = nullptr);

  float max() const { return max_; }   // of the row
  double sum() const { return sum_; }  // as SoftmaxSums' sum
  std::span<const float> all() const { return {weights_.data(), size_}; }

  /// Collects the tokens of at least `floor`, by id.
  /// @param floor  above 0.
  void collect(float floor, std::vector<Weighted>& out) const;

 private:
  std::vector<float> weights_;  // [size_ and zeros up to a whole block]
  std::vector<float> maxima_;   // [blocks, kLanes]: the largest in each lane of a block
  std::vector<double> sums_;    // [chunks]
  size_t size_ = 0;
  float max_ = 0;
  double sum_ = 0;
};

}  // namespace medusa
