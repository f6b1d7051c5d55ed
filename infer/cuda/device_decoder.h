// The decoding loop on a GPU: each step is one captured graph, and the host reads its tokens while
// the next one runs. It decodes as decoder.h says, with a fixed choice tree or none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backbone/cuda/device_runtime.h"
#include "backbone/cuda/graph_cache.h"
#include "infer/backbone_target.h"
#include "infer/cuda/device_step.h"
#include "infer/decoder.h"
#include "infer/sequence_list.h"

namespace medusa {

/// Which kernels and which runtime a loop uses. Those of the tests are emulated.
struct DeviceLoopKernels {
  const HeadKernels* heads = nullptr;
  const StepKernels* steps = nullptr;
  DeviceRuntime* runtime = nullptr;

  bool complete() const { return heads != nullptr && steps != nullptr && runtime != nullptr; }
};

/// Gives the kernels of this build; not complete where it was made without a CUDA compiler.
DeviceLoopKernels cuda_loop_kernels();

/// PickDrafts by a kernel.
PickDrafts pick_with(const StepKernels& kernels);

/// A graph that was captured, for reports.
struct CapturedGraph {
  int32_t num_sequences = 0;
  int32_t num_nodes = 0;    // of each sequence's tree
  int64_t max_context = 0;  // positions below this

  auto operator<=>(const CapturedGraph&) const = default;
};

/// Decodes the sequences of one target with one tree and one rule. The same text as the host's loop
/// with the same kernels; a tree that no longer fits near the end of a text or of the context is
/// computed all the same and its tokens cut off, so a typical rule may choose another path in a
/// text's last step.
///
/// A step is read while the next one runs, so a request ends one step() after its last token was
/// computed. Tokens are emitted without an output.
class DeviceDecoder : public Decoder {
 public:
  /// @param target  over a Llama on a CudaLlama. Kept by reference.
  /// @param heads   null: plain decoding.
  /// @param shape   ignored without heads.
  DeviceDecoder(BackboneTarget& target, std::shared_ptr<DeviceHeads> heads, const TreeShape& shape,
                const VerifyParameters& verify, const DeviceLoopKernels& kernels);
  ~DeviceDecoder() override;

  /// @throws UserError  also where the request brings a drafter, a rule or logits processors: a
  ///                    captured step has its own.
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

  /// "graph: 1 sequence of 8 nodes within 512 tokens, 421 kernels", a line for each.
  std::string report() const override;

  /// Lists the graphs of this decoder so far, in order.
  std::vector<CapturedGraph> graphs() const { return graphs_.captured(); }

  /// Counts the kernels of a step of this kind, which must have run.
  int64_t num_kernels(const CapturedGraph& kind) const { return graphs_.num_kernels(kind); }

  int32_t num_nodes() const { return step_.num_nodes(); }

 private:
  struct Sequence;
  struct InFlightStep;

  void start(Sequence& s);
  void replay(InFlightStep& in_flight);
  void take(InFlightStep& in_flight);
  void take_tokens(Sequence& s, std::span<const int32_t> tokens);
  std::vector<FinishedRequest> drop_ended();
  void wait_for_in_flight();

  BackboneTarget& target_;
  CudaLlama& llama_;
  DeviceLoopKernels kernels_;
  std::shared_ptr<DeviceHeads> heads_;  // null: plain decoding
  DeviceStep step_;
  GraphCache<CapturedGraph> graphs_;
  SequenceList<Sequence> sequences_;              // the running ones by place
  std::unique_ptr<HostBuffer> buffers_[2];        // steps write to them in turns
  int32_t turn_ = 0;                              // of the next step: 0 or 1
  bool turn_is_set_ = false;                      // on the device: not behind a step that failed
  std::unique_ptr<InFlightStep> running_, read_;  // read_ is the step that was started before
  DecodeTimes times_;
};

}  // namespace medusa
