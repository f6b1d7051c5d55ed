// The kernel of loss_kernels.h: a row is read once for its largest logit, its sum of exponentials
// and the label's rank (online softmax: Milakov and Gimelshein, arXiv:1805.02867), and once more to
// be replaced by its gradient.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/kernels/reduce_block.cuh"
#include "train/cuda/loss_kernels.h"
#include "train/loss/row_loss.h"

namespace medusa {
namespace {  // a test program holds the emulated ones of the same names beside these

constexpr float kBelowAnyLogit = -1e30F;
constexpr int32_t kNoRank = 0x7FFFFFFF;

/// Of some logits of a row: Σ exp(x - largest), and how many stand above the label's.
struct LogitSums {
  float largest;
  float sum;
  int32_t above;
};

__device__ inline LogitSums sums_of_both(const LogitSums& a, const LogitSums& b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float of_a = a.sum * expf(a.largest - largest), of_b = b.sum * expf(b.largest - largest);
  return {largest, of_a + of_b, a.above + b.above};
}
__device__ inline LogitSums of_lane(const LogitSums& mine, int mask) {
  return {shuffle_xor(mine.largest, mask), shuffle_xor(mine.sum, mask),
          shuffle_xor(mine.above, mask)};
}

__device__ inline float load_logit(const float* from) { return *from; }
__device__ inline float load_logit(const Bf16* from) { return to_float(*from); }
__device__ inline void store_gradient(float* to, float x) { *to = x; }
__device__ inline void store_gradient(Bf16* to, float x) { *to = to_bf16(x); }

/// Logits that a thread reads and writes at once: eight, or one where rows do not begin at
/// multiples of 16 bytes.
template <bool kWide>
struct LogitPack {
  static constexpr int kSize = kWide ? 8 : 1;
  float x[kSize];

  template <typename T>
  __device__ void load(const T* from) {
    if constexpr (kWide) {
      const Eight eight = load_eight(from);
      for (int i = 0; i < kSize; ++i) x[i] = eight.x[i];
    } else {
      x[0] = load_logit(from);
    }
  }
  template <typename T>
  __device__ void store(T* to) const {
    if constexpr (kWide) {
      Eight eight;
      for (int i = 0; i < kSize; ++i) eight.x[i] = x[i];
      store_eight(to, eight);
    } else {
      store_gradient(to, x[0]);
    }
  }
};

/// What a row should have said, known to all threads of the block.
struct RowWanted {
  const int32_t* rows;
  const float* probs;  // null: 1
  int32_t count;
  float* logits;  // shared memory, as shares
  float* shares;  // of the target in the gradient

  __device__ float prob(int32_t i) const { return probs == nullptr ? 1.0F : probs[i]; }
};

/// @param label  negative: none; then nothing is above it that counts.
template <bool kWide, typename T>
__device__ LogitSums sums_of_logits(const T* row, int64_t size, int32_t label) {
  using Pack = LogitPack<kWide>;
  const float wanted = label < 0 ? 0 : load_logit(row + label);
  LogitSums sums{kBelowAnyLogit, 0, 0};
  for (int64_t i = int64_t{thread_index()} * Pack::kSize; i < size;
       i += int64_t{kRowThreads} * Pack::kSize) {
    Pack pack;
    pack.load(row + i);
    float largest = sums.largest;
    for (const float x : pack.x) largest = fmaxf(largest, x);
    float sum = sums.sum * expf(sums.largest - largest);
    for (int j = 0; j < Pack::kSize; ++j) {
      const float x = pack.x[j];
      sum += expf(x - largest);
      sums.above += x > wanted || (x == wanted && i + j < label) ? 1 : 0;
    }
    sums.largest = largest;
    sums.sum = sum;
  }
  return reduce_block(sums, sums_of_both);
}

__device__ inline float prob_of(float logit, const LogitSums& sums) {
  return expf(logit - sums.largest) / sums.sum;
}

/// The row's loss. Sets the target's shares, and what the gradient weighs in all.
__device__ inline float loss_of_row(const RowWanted& wanted, bool acceptance, const LogitSums& sums,
                                    float& weight) {
  float expected = 0, alpha = 0, below = 0;
  for (int32_t i = 0; i < wanted.count; ++i) {
    const float p = wanted.prob(i);
    expected += p * wanted.logits[i];
    if (!acceptance) continue;
    const float q = prob_of(wanted.logits[i], sums);
    alpha += fminf(q, p);
    below += q < p ? q : 0;
  }
  // So far away that every q vanishes, acceptance points where cross-entropy does.
  const bool likeness = !acceptance || alpha == 0;
  if (!likeness) weight *= below / alpha;
  const int t = thread_index();
  if (t < wanted.count) {
    const float p = wanted.prob(t), q = prob_of(wanted.logits[t], sums);
    wanted.shares[t] = likeness ? p : q < p ? q / below : 0;
  }
  return likeness ? logf(sums.sum) + sums.largest - expected : -logf(alpha);
}

template <bool kWide, typename T>
__device__ void write_gradient(T* row, int64_t size, float weight, const LogitSums& sums) {
  using Pack = LogitPack<kWide>;
  const float factor = weight / sums.sum;
  for (int64_t i = int64_t{thread_index()} * Pack::kSize; i < size;
       i += int64_t{kRowThreads} * Pack::kSize) {
    Pack pack;
    pack.load(row + i);
    for (float& x : pack.x) x = weight == 0 ? 0 : factor * expf(x - sums.largest);
    pack.store(row + i);
  }
}

template <typename T, bool kWide>
__global__ void __launch_bounds__(kRowThreads, 1)
    row_loss_kernel(const RowLossArgs args, T* logits) {
  begin_kernel();
  __shared__ float target_logits[kMaxTargets], target_shares[kMaxTargets];
  const auto r = static_cast<int64_t>(blockIdx.x);
  const int t = thread_index();
  T* row = logits + r * args.row_size;
  const bool writes = args.scale != 0;
  if (args.has_loss[r] == 0) {
    if (writes) write_gradient<kWide>(row, args.row_size, 0, {0, 1, 0});
    if (t == 0) {
      args.losses[r] = 0;
      args.ranks[r] = kNoRank;
    }
    return;
  }
  const int64_t first = r * args.num_targets;
  const RowWanted wanted{args.target_rows + first,
                         args.target_probs == nullptr ? nullptr : args.target_probs + first,
                         args.num_targets, target_logits, target_shares};
  if (t < wanted.count) target_logits[t] = load_logit(row + wanted.rows[t]);
  const LogitSums sums = sums_of_logits<kWide>(row, args.row_size, args.labels[r]);
  float weight = args.scale;  // behind a barrier of reduce_block()
  const float loss = loss_of_row(wanted, args.acceptance, sums, weight);
  if (t == 0) {
    args.losses[r] = loss;
    args.ranks[r] = args.labels[r] < 0 ? kNoRank : sums.above;
  }
  if (!writes) return;
  write_gradient<kWide>(row, args.row_size, weight, sums);
  sync_block();
  if (t < wanted.count)
    store_gradient(row + wanted.rows[t],
                   weight * (prob_of(target_logits[t], sums) - target_shares[t]));
}

void row_loss(const RowLossArgs& args, DeviceStream stream) {
  const bool wide = args.row_size % 8 == 0;
  const auto start = [&](auto kernel, auto* logits) {
    launch(kernel, dim3(static_cast<unsigned>(args.num_rows)), kRowThreads, 0, stream, args,
           logits);
  };
  if (args.halves != nullptr)
    wide ? start(row_loss_kernel<Bf16, true>, args.halves)
         : start(row_loss_kernel<Bf16, false>, args.halves);
  else
    wide ? start(row_loss_kernel<float, true>, args.floats)
         : start(row_loss_kernel<float, false>, args.floats);
}

constexpr LossKernels loss_kernel_table(const char* name) { return {name, row_loss}; }

}  // namespace
}  // namespace medusa
