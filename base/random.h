// Random numbers addressed by name instead of drawn in order.
#pragma once

#include <cstdint>

namespace medusa {

/// What a number is for. Numbers of different purposes are independent.
enum class RandomUse : uint64_t {
  Accept = 1,
  Residual = 2,
  Draft = 3,
  Shuffle = 4,
  Init = 5,
  Question = 6,
  Bootstrap = 7,
  Dropout = 8
};

/// The run's seed. uniform() is a pure function: the number for a position does not depend on how
/// many were asked for before it, so output does not change with the drafter, the tree or the
/// batch. Constexpr, so that device code may call it too.
class Random {
 public:
  constexpr explicit Random(uint64_t seed) : seed_(seed) {}

  /// The numbers of one of many: request i, sample i. Independent of those of every other i.
  constexpr Random child(uint64_t i) const {
    return Random(mix(seed_ ^ mix(i + 0xD1B54A32D192ED03ULL)));
  }

  constexpr uint64_t seed() const { return seed_; }

  /// @param position  absolute token position in the sequence.
  /// @param index     tells several numbers of one position and use apart.
  /// @returns a number in [0, 1), 53 random bits.
  constexpr double uniform(RandomUse use, int64_t position, uint64_t index = 0) const {
    return static_cast<double>(bits(use, position, index) >> 11) * 0x1.0p-53;
  }

  /// The same number as 64 random bits.
  constexpr uint64_t bits(RandomUse use, int64_t position, uint64_t index = 0) const {
    uint64_t x = mix(seed_ ^ mix(static_cast<uint64_t>(use)));
    x = mix(x ^ mix(static_cast<uint64_t>(position)));
    return mix(x ^ mix(index + 0x632BE59BD9B4E019ULL));
  }

 private:
  static constexpr uint64_t mix(uint64_t x) {  // splitmix64 finaliser
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  uint64_t seed_;
};

}  // namespace medusa
