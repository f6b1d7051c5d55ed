#include "infer/gumbel_max.h"

#include <cstddef>
#include <vector>

#include "base/check.h"
#include "infer/row_lanes.h"

namespace medusa {
namespace {

constexpr size_t kRacers = 4 * kLanes;  // tokens that are ruled out together

/// What a race is about.
struct Race {
  const float* row = nullptr;
  float max = 0, scale = 1;
  uint64_t key = 0;  // of its random numbers
};

/// Tokens from a first one on, ruled out by a time.
struct Heat {
  float weights[kRacers];
  F32x16 sums{};      // of their weights
  bool open = false;  // whether any of them may be in time
};

/// Weighs kRacers tokens from `first` on and looks whether one may arrive before `time`, by bounds
/// on both sides that rounding cannot cross: 1 - u has 53 bits here and one less below.
MEDUSA_WIDE void run_heat(const Race& race, size_t first, size_t end, double time, Heat& heat) {
  F32x16 x, weight, largest{}, least;
  for (size_t j = 0; j < kRacers; j += kLanes) {
    load_logits(race.row, first + j, end, x);
    below_max(race.max, race.scale, x);
    weigh(x, weight);
    heat.sums += weight;
    max_with(weight, largest);
    store(weight, heat.weights + j);
  }
  const double reach = time * RaceLeader::kRoundedUp;
  fill(static_cast<float>(0x0.FFFFp-53 / reach), least);  // 1 - u is at least 2^-53
  heat.open = false;
  if (!any_of(largest > least)) return;

  Doubles one_plus_u, weights;
  const Words places{0, 1, 2, 3, 4, 5, 6, 7};
  WordMask in_time{};
  for (size_t j = 0; j < kRacers; j += kDoubles) {
    Words bits = places + (first + j);
    Random::bits_of_indices(race.key, bits);
    bits = (bits >> 12) | 0x3FF0000000000000;  // 1 + u, rounded down
    std::memcpy(&one_plus_u, &bits, sizeof bits);
    upcast(heat.weights + j, weights);
    in_time |= (2 - 0x1.0p-52) - one_plus_u < weights * reach;
  }
  heat.open = any_of(in_time);
}

}  // namespace

RowDraw draw_from_row(std::span<const float> row, float scale, const Random& random, RandomUse use,
                      int64_t position, ThreadPool* threads) {
  MEDUSA_ASSERT(!row.empty());
  struct Part {
    RaceLeader leader;
    F32x16 sums{};
  };
  std::vector<Part> parts(static_cast<size_t>(num_chunks(row.size())));
  const auto u_of = [&](size_t i) { return random.uniform(use, position, i); };
  const uint64_t key = random.key(use, position);
  const RowPeak peak = after_peak(row, threads, [&](Range range, const RowPeak& highest) {
    RaceLeader leader{static_cast<TokenId>(highest.place)};
    leader.meet(leader.token, 1, u_of(highest.place));
    const Race race{row.data(), highest.value, scale, key};
    for_each_chunk(range, [&](size_t chunk, size_t begin, size_t size) {
      Heat heat;
      const size_t end = begin + size;
      for (size_t first = begin; first < end; first += kRacers) {
        run_heat(race, first, end, leader.time, heat);
        for (size_t j = 0; heat.open && j < kRacers; ++j)
          if (heat.weights[j] > 0)
            leader.meet(static_cast<TokenId>(first + j), static_cast<double>(heat.weights[j]),
                        u_of(first + j));
      }
      parts[chunk] = {leader, heat.sums};  // of this range so far, and of this chunk
    });
  });
  RowDraw out{static_cast<TokenId>(peak.place), peak.value, 0};
  double time = std::numeric_limits<double>::infinity();
  for (const Part& part : parts) {
    out.sum += sum_of(part.sums);
    if (part.leader.time >= time) continue;
    time = part.leader.time;
    out.token = part.leader.token;
  }
  return out;
}

}  // namespace medusa
