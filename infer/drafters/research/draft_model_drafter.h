// Speculative decoding with a draft model: it writes a chain, the target checks it.
// Papers: Leviathan et al. (arXiv:2211.17192), Chen et al. (arXiv:2302.01318); with the target's
// own layers as the draft model Draft & Verify (arXiv:2309.08168).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "infer/draft_models/draft_choice.h"
#include "infer/draft_models/draft_model.h"
#include "infer/draft_models/draft_schedule.h"

namespace medusa {

struct DraftModelConfig {
  std::optional<std::string> model;
  DraftScheduleConfig schedule;

  template <typename Fields>
  void fields(Fields& f) {
    f("model", model,
      "the draft model: a .gguf file or a folder; null: the one that make-draft made for this run");
    f("num_draft", schedule.num_draft, "tokens drafted in a step, at most or to begin with",
      between(1, 63));
    f("schedule", schedule.kind, "how far the draft model runs ahead");
    f("threshold", schedule.threshold,
      "schedule confidence: a token less probable than this ends the draft; adapted to each text",
      between(0.0, 1.0));
  }
  void validate() const {}
};

struct LayerSkipConfig {
  std::vector<int64_t> skip;
  int32_t num_draft = 4;
  double exit_threshold = 0.6;

  template <typename Fields>
  void fields(Fields& f) {
    f("skip", skip, "layers that do not draft; empty: those that calibrate --layers found");
    f("num_draft", num_draft, "most tokens drafted in a step", between(1, 63));
    f("exit_threshold", exit_threshold,
      "a token less probable than this ends the draft; adapted to each text", between(0.0, 1.0));
  }
  void validate() const {}
  DraftScheduleConfig schedule() const {
    return {DraftScheduleKind::Confidence, num_draft, exit_threshold};
  }
};

class DraftModelDrafter : public Drafter {
 public:
  /// @param schedule  this text's, or that of all texts.
  DraftModelDrafter(std::unique_ptr<DraftSequence> sequence, const DraftChoice& choice,
                    std::shared_ptr<DraftSchedule> schedule)
      : sequence_(std::move(sequence)), choice_(choice), schedule_(std::move(schedule)) {}

  void begin(std::span<const TokenId> prompt) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  std::unique_ptr<DraftSequence> sequence_;
  DraftChoice choice_;
  std::shared_ptr<DraftSchedule> schedule_;
  std::vector<double> probabilities_;  // of the chain that was proposed last
};

}  // namespace medusa
