// How long one whole decoding step takes with trees of different sizes, on this machine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "heads/heads_runner.h"
#include "heads/tree/choice_tree.h"
#include "infer/backbone_target.h"
#include "infer/host_decoder.h"

namespace medusa {

struct StepTimes {
  std::vector<int32_t> sizes;         // N, ascending
  std::vector<double> step_ms;        // of a whole step: propose, verify, accept, commit
  std::vector<double> drafting_ms{};  // of these, the drafter's part; empty: not timed by itself
  std::vector<double> rows_ms{};  // entry N - 1: a step of N rows without drafting, by turns with
                                  // these; empty: not timed
};

/// Rows of a chain that are timed to know what all from 1 to the last cost.
inline constexpr std::array<int32_t, 9> kTimedRows{1, 2, 4, 8, 12, 16, 20, 24, 32};

/// Milliseconds of the parts of a step.
struct StepParts {
  double propose = 0, verify = 0, accept = 0, commit = 0;

  double total() const { return propose + verify + accept + commit; }
};

/// Times single steps of the decoder (infer/host_decoder.h), one sequence. After each step
/// the cache is put back, so that every step stands behind the same context.
class StepTimer {
 public:
  using Propose = std::function<CandidateTree(const DraftContext&)>;

  /// @param target   has a free slot, which is held as long as this lives; kept by reference.
  /// @param context  tokens before the timed steps, the first root included; at least 2.
  /// @param rule     that judges the steps' trees; null: the greedy one.
  StepTimer(BackboneTarget& target, std::span<const TokenId> context,
            std::shared_ptr<const AcceptanceRule> rule = nullptr);
  ~StepTimer();
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

  /// Runs one step with the tree that propose() gives.
  StepParts time(const Propose& propose);

 private:
  class ForgetfulTarget;
  class GivenDrafter;

  void step();

  std::unique_ptr<ForgetfulTarget> target_;
  Propose propose_;
  int64_t num_emitted_ = 0;
  std::unique_ptr<HostDecoder> decoder_;
};

/// A chain of these many rows below a root: which tokens are in it does not change what it costs.
CandidateTree timed_chain(TokenId root, int32_t rows);

/// What kTimedRows took -> what all rows up to the last cost: straight lines, none below the one
/// before.
/// @param samples  [kTimedRows] milliseconds, several of each.
/// @returns        [kTimedRows.back()], entry N - 1.
std::vector<double> ascending_rows_ms(std::vector<std::vector<double>> samples);

/// Times steps with trees, and chains of kTimedRows without drafting, behind a context, by turns
/// (interleave.h). Heads behind a prefix layer run it over one position with nothing before it; in
/// a text they run it over those of the last step, with the answer before them.
/// @param paths    best first; a tree of N nodes is the root and the first N - 1.
/// @param context  as StepTimer's.
StepTimes time_steps(BackboneTarget& target, HeadsRunner& runner, std::span<const RankPath> paths,
                     std::span<const TokenId> context, std::vector<int32_t> sizes, int64_t repeats,
                     ProgressFunction tell = {});

/// The time of every size from 1 to the largest one timed, straight lines between those timed.
/// @param sizes  ascending;  @param ms  [sizes]
/// @returns      [largest], entry N - 1.
std::vector<double> interpolate_ms(std::span<const int32_t> sizes, std::span<const double> ms);

}  // namespace medusa
