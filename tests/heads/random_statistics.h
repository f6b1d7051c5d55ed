// Made-up statistics in which heads are right together more often than chance.
#pragma once

#include <vector>

#include "base/random.h"
#include "heads/head_statistics.h"

namespace medusa {

inline HeadStatistics random_statistics(int64_t num_heads, int64_t top_k, int64_t num_answers,
                                        int64_t length, uint64_t seed) {
  HeadStatistics statistics(num_heads, top_k);
  for (int64_t a = 0; a < num_answers; ++a) {
    const Random random = Random(seed).child(static_cast<uint64_t>(a));
    std::vector<TokenId> answer, drafts;
    for (int64_t i = 0; i < length; ++i) answer.push_back(static_cast<TokenId>(100 + i));
    for (int64_t i = 0; i < length; ++i) {
      const double ease = random.uniform(RandomUse::Init, i);  // shared by the heads of a position
      for (int64_t head = 0; head < num_heads; ++head) {
        const double draw = random.uniform(RandomUse::Init, i, static_cast<uint64_t>(head + 1));
        const auto rank =
            static_cast<int64_t>(draw * (0.4 + 1.6 * ease) * static_cast<double>(top_k + head));
        for (int64_t r = 0; r < top_k; ++r)
          drafts.push_back(r == rank ? static_cast<TokenId>(100 + i + 1 + head) : -1);
      }
    }
    statistics.add_answer(drafts, answer);
  }
  return statistics;
}

}  // namespace medusa
