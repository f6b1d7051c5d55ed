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
    bits_of_indices(key(use, position), index);
    return index;
  }

  /// What the numbers of one use and position have in common.
  constexpr uint64_t key(RandomUse use, int64_t position) const {
    return mix(mix(seed_ ^ mix(static_cast<uint64_t>(use))) ^ mix(static_cast<uint64_t>(position)));
  }

  /// Of a key(): indices become their bits().
  /// @tparam Word  uint64_t, or a vector of them.
  template <typename Word>
  [[gnu::always_inline]] static constexpr void bits_of_indices(uint64_t key, Word& index) {
    index += 0x632BE59BD9B4E019ULL;
    mix_in_place(index);
    index ^= key;
    mix_in_place(index);
  }

 private:
  template <typename Word>
  [[gnu::always_inline]] static constexpr void mix_in_place(Word& x) {  // splitmix64 finaliser
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
  }
  static constexpr uint64_t mix(uint64_t x) {
    mix_in_place(x);
    return x;
  }
  uint64_t seed_;
};

}  // namespace medusa
