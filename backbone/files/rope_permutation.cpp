#include "backbone/files/rope_permutation.h"

#include "base/check.h"

namespace medusa {
namespace {

/// With partial RoPE the first half of our dimensions begins with the first half of
/// those that are rotated, the second with their second half; what is not rotated fills both.
int64_t row_in_head(int64_t row, int64_t size, int64_t rotated) {
  const int64_t half = size / 2, rotated_half = rotated / 2, still_half = half - rotated_half;
  if (row < rotated) return row < rotated_half ? row : half + row - rotated_half;
  row -= rotated;
  return rotated_half + (row < still_half ? row : half + row - still_half);
}

}  // namespace

std::vector<int64_t> rope_permutation(const ModelConfig& config, int64_t heads, bool interleaved) {
  const int64_t size = config.head_size, rotated = config.rotated();
  MEDUSA_ASSERT(!interleaved || rotated == size, rotated);
  if (!interleaved && rotated == size) return {};
  std::vector<int64_t> rows;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < size; ++row)
      rows.push_back(head * size + (interleaved ? row % 2 * (size / 2) + row / 2
                                                : row_in_head(row, size, rotated)));
  return rows;
}

std::vector<int64_t> inverse_rows(const std::vector<int64_t>& rows) {
  std::vector<int64_t> inverse(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    inverse[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace medusa
