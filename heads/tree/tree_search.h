// Statistics and the cost of each size -> the best choice tree. No LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "heads/head_statistics.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

/// A path and the estimated probability that all its drafts are right.
struct PathValue {
  RankPath path;
  int64_t count = 0;       // positions at which it was right
  double probability = 0;  // smoothed
};

/// The num_paths most probable paths, best first; ties in node order. The first N - 1 of them and
/// the root are the best tree of N nodes, for every N: a step emits 1 token plus one for each right
/// node on the accepted path, so its expectation is 1 + the sum of the nodes' probabilities; a path
/// is right only where its prefix is, so no path is more probable than its prefix, and the most
/// probable paths therefore always bring their prefixes along.
///
/// Estimator: P(path) = P(prefix) * (count(path) + s * m) / (count(prefix) + s), where m is the
/// share of positions at which the path's last head was right with its last rank, whatever came
/// before, and s = smoothing. Frequent prefixes keep their joint counts; behind rare ones the
/// estimate turns into the product of marginals.
///
/// @param smoothing  pseudo-positions s; 0: plain counts (a path behind a prefix never seen is 0).
std::vector<PathValue> rank_paths(const HeadStatistics& statistics, int64_t num_paths,
                                  double smoothing = 20);

/// Which positions of an answer are taken for beginnings of steps.
enum class StepStarts {
  Everywhere,  // all of them
  Replayed,    // the first, and then those at which decoding this answer with the tree would have
               // begun its steps: each where the one before ended. A step ends where a draft was
               // wrong, and there the next one is harder to draft too, so this gives less
};

/// Tokens per step that this tree would have had on the statistics' answers.
double tokens_per_step(const HeadStatistics& statistics, const std::vector<RankPath>& paths,
                       StepStarts starts);

/// Measures the tree with the 95 % interval of a bootstrap over answers (positions of one answer
/// are not independent).
Estimate measure_tree(const HeadStatistics& statistics, const std::vector<RankPath>& paths,
                      StepStarts starts, const Random& random, int64_t num_resamples = 1000);

/// The point with the most tokens per second; of equal ones the smaller tree.
/// @param sizes  at least one, step_ms > 0.
const TreeSizePoint& choose_size(const std::vector<TreeSizePoint>& sizes);

}  // namespace medusa
