#include "infer/row_math.h"

#include <cmath>

#include "base/check.h"
#include "infer/row_lanes.h"

namespace medusa {
namespace {

constexpr size_t kBlock = 4 * kLanes;  // weights that are passed over together
static_assert(kRowChunk % kBlock == 0);

MEDUSA_WIDE float max_of_chunk(const float* row, size_t size) {
  F32x16 largest[4], x;
  for (F32x16& each : largest) fill(-std::numeric_limits<float>::infinity(), each);
  for (size_t i = 0; i < size; i += kBlock)
    for (size_t j = 0; j < 4; ++j) {
      load_logits(row, i + j * kLanes, size, x);
      max_with(x, largest[j]);
    }
  for (size_t j = 1; j < 4; ++j) max_with(largest[j], largest[0]);
  return max_of(largest[0]);
}

/// Where a value first stands; size: nowhere.
MEDUSA_WIDE size_t place_in_chunk(const float* row, size_t size, float value) {
  F32x16 wanted, x;
  fill(value, wanted);
  size_t i = 0;
  for (; i < size; i += kLanes) {
    load_logits(row, i, size, x);
    if (any_of(x == wanted)) break;
  }
  while (i < size && row[i] != value) ++i;
  return i;
}

struct ChunkSums {
  double sum = 0, weighted = 0;
};

MEDUSA_WIDE ChunkSums sums_of_chunk(const float* row, size_t size, float max, float scale) {
  VecSums sums, products;
  F32x16 x, weight, lowest;
  fill(kLowestExponent, lowest);
  for (size_t i = 0; i < size; i += kLanes) {
    load_logits(row, i, size, x);
    below_max(max, scale, x);
    weigh(x, weight);
    sums.add(weight);
    products.add(weight * (x < lowest ? lowest : x));  // never 0 · -inf
  }
  return {sums.total(), products.total()};
}

/// @param weights  [size up to a whole block] written; the same of maxima, a block's lanes each.
/// @returns  their sum.
MEDUSA_WIDE double weigh_chunk(const float* row, size_t size, float max, float scale,
                               float* weights, float* maxima) {
  VecSums sums;
  F32x16 x, weight;
  for (size_t i = 0; i < size; i += kBlock) {
    F32x16 largest{};
    for (size_t j = i; j < i + kBlock; j += kLanes) {
      load_logits(row, j, size, x);
      below_max(max, scale, x);
      weigh(x, weight);
      sums.add(weight);
      store(weight, weights + j);
      max_with(weight, largest);
    }
    store(largest, maxima + i / 4);
  }
  return sums.total();
}

/// The next block from `block` on with a weight of at least `floor`; num_blocks: none.
MEDUSA_WIDE size_t next_block(const float* maxima, size_t block, size_t num_blocks, float floor) {
  F32x16 least, x;
  fill(floor, least);
  for (; block < num_blocks; ++block) {
    load(maxima + block * kLanes, x);
    if (any_of(x >= least)) break;
  }
  return block;
}

}  // namespace

RowPeak chunk_peak(std::span<const float> chunk, size_t first) {
  const float max = max_of_chunk(chunk.data(), chunk.size());
  return {max, first + place_in_chunk(chunk.data(), chunk.size(), max)};
}

RowPeak row_peak(std::span<const float> row) {
  MEDUSA_ASSERT(!row.empty());
  return after_peak(row, nullptr, [](Range, const RowPeak&) {});
}

double SoftmaxSums::log_sum() const { return std::log(sum); }

SoftmaxSums softmax_sums(std::span<const float> row, float scale, ThreadPool* threads) {
  MEDUSA_ASSERT(!row.empty());
  std::vector<ChunkSums> chunks(static_cast<size_t>(num_chunks(row.size())));
  SoftmaxSums out;
  out.max = after_peak(row, threads, [&](Range range, const RowPeak& peak) {
              for_each_chunk(range, [&](size_t chunk, size_t first, size_t size) {
                chunks[chunk] = sums_of_chunk(row.data() + first, size, peak.value, scale);
              });
            }).value;
  for (const ChunkSums& chunk : chunks) {
    out.sum += chunk.sum;
    out.weighted += chunk.weighted;
  }
  return out;
}

void RowWeights::set(std::span<const float> row, float scale, ThreadPool* threads) {
  MEDUSA_ASSERT(!row.empty());
  size_ = row.size();
  const size_t blocks = (size_ + kBlock - 1) / kBlock;
  weights_.resize(blocks * kBlock);
  maxima_.resize(blocks * kLanes);
  sums_.resize(static_cast<size_t>(num_chunks(size_)));
  max_ = after_peak(row, threads, [&](Range range, const RowPeak& peak) {
           for_each_chunk(range, [&](size_t chunk, size_t first, size_t size) {
             sums_[chunk] = weigh_chunk(row.data() + first, size, peak.value, scale,
                                        weights_.data() + first, maxima_.data() + first / 4);
           });
         }).value;
  sum_ = 0;
  for (const double sum : sums_) sum_ += sum;
}

void RowWeights::collect(float floor, std::vector<Weighted>& out) const {
  MEDUSA_ASSERT(floor > 0, floor);
  out.clear();
  const size_t num_blocks = maxima_.size() / kLanes;
  for (size_t block = 0; block < num_blocks; ++block) {
    block = next_block(maxima_.data(), block, num_blocks, floor);
    const size_t end = std::min(size_, (block + 1) * kBlock);
    for (size_t i = block * kBlock; i < end; ++i)
      if (weights_[i] >= floor) out.push_back({weights_[i], static_cast<int32_t>(i)});
  }
}

}  // namespace medusa
