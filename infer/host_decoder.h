// The decoding loop on the host: propose, verify, accept, commit. It runs every drafter and every
// rule, on any device; the GPU's own loop for a fixed tree is cuda/device_decoder.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "infer/decoder.h"
#include "infer/joint_pruning.h"
#include "infer/sequence_list.h"

namespace medusa {

struct HostDecoderOptions {
  StepCost cost{};  // of a pass by its rows; empty: each drafter alone weighs its proposals

  /// By how much rows of prompts may lengthen a pass that also holds trees, as a share of the pass
  /// without them: texts keep flowing while a long prompt enters. Prompts then enter in the order
  /// of their rows that are left, the longer they wait the sooner. Goes by the cost. Nothing:
  /// prompts take as many rows as a pass has, in the order they came.
  std::optional<double> prompt_share{};
};

/// Decodes sequences on one target. Requests may differ in drafter, rule, limits and seed. A prompt
/// enters in chunks, in the same passes as the trees of other sequences, where the target's rows
/// are independent; elsewhere in passes of its own, before theirs.
class HostDecoder : public Decoder {
 public:
  /// Most rows of prompts in one pass: enough to use the weights well, few enough not to hold up
  /// the sequences that share the pass.
  static constexpr int64_t kPromptRows = 128;
  static constexpr int64_t kRowsAlone = 32;  // of a prompt beside which nothing stands
  /// Where prompt_share bounds them: the next prompt enters whole if it has so few rows, and of a
  /// longer one enter at least kFewestRows.
  static constexpr int64_t kShortPrompt = 32, kFewestRows = 4;

  /// @param target        kept by reference. Other decoders may use its other slots.
  /// @param rule          of requests that bring none.
  /// @param make_drafter  of requests that bring none.
  HostDecoder(TargetModel& target, std::shared_ptr<const AcceptanceRule> rule,
              DrafterFactory make_drafter, HostDecoderOptions options = {});
  ~HostDecoder() override;
  HostDecoder(const HostDecoder&) = delete;
  HostDecoder& operator=(const HostDecoder&) = delete;

  RequestId submit(DecodeRequest request) override;
  std::vector<FinishedRequest> step() override;
  std::optional<DecodeStats> cancel(RequestId id) override;
  void cancel_all() override;

  const DecodeStats* stats(RequestId id) const override;
  int64_t num_waiting() const override { return std::ssize(sequences_.waiting); }
  int64_t num_running() const override { return std::ssize(sequences_.running); }
  int64_t num_free() const override;
  KvUse cache_use() const override { return target_.cache_use(); }
  const DecodeTimes& times() const override { return times_; }

 private:
  struct Sequence;
  struct Pass;

  void admit();
  void run_prompts_alone();
  Pass plan();
  int64_t prompt_room(int32_t num_trees) const;
  void propose(Pass& pass);
  void run(Pass& pass);
  void accept_all(Pass& pass);
  void advance(Sequence& s, const TargetOutput& output);
  void count(const Pass& pass);
  std::vector<FinishedRequest> take_ended();

  TargetModel& target_;
  std::shared_ptr<const AcceptanceRule> rule_;
  DrafterFactory make_drafter_;
  JointPruning pruning_;
  std::optional<double> prompt_share_;
  int32_t tree_rows_ = 0;  // of the last pass
  SequenceList<Sequence> sequences_;
  DecodeTimes times_;
};

}  // namespace medusa
