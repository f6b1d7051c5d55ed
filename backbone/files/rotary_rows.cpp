#include "backbone/files/rotary_rows.h"

#include "base/check.h"

namespace medusa {
namespace {

/// In a head that turns in part the first half of our dimensions begins with the first half of
/// those that turn, the second with their second half; what does not turn fills both.
int64_t row_in_head(int64_t row, int64_t size, int64_t turned) {
  const int64_t half = size / 2, turned_half = turned / 2, still_half = half - turned_half;
  if (row < turned) return row < turned_half ? row : half + row - turned_half;
  row -= turned;
  return turned_half + (row < still_half ? row : half + row - still_half);
}

}  // namespace

std::vector<int64_t> rotary_rows(const ModelConfig& config, int64_t heads, bool neighbours) {
  const int64_t size = config.head_size, turned = config.turned();
  MEDUSA_ASSERT(!neighbours || turned == size, turned);
  if (!neighbours && turned == size) return {};
  std::vector<int64_t> rows;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < size; ++row)
      rows.push_back(head * size + (neighbours ? row % 2 * (size / 2) + row / 2
                                               : row_in_head(row, size, turned)));
  return rows;
}

std::vector<int64_t> inverse_rows(const std::vector<int64_t>& rows) {
  std::vector<int64_t> inverse(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    inverse[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace medusa
