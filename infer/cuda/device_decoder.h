// The decoding loop on a GPU: each step is one captured graph, and the host reads its tokens while
// the next one runs. The fast twin of decoder.h for a fixed choice tree, or none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "backbone/cuda/device_runtime.h"
#include "infer/backbone_target.h"
#include "infer/cuda/device_step.h"
#include "infer/decoder.h"

namespace medusa {

/// Which kernels and which runtime a loop uses. Those of the tests are emulated.
struct DeviceLoopKernels {
  const HeadKernels* heads = nullptr;
  const StepKernels* steps = nullptr;
  DeviceRuntime* runtime = nullptr;

  bool complete() const { return heads != nullptr && steps != nullptr && runtime != nullptr; }
};

/// Those of this build; not complete where it was made without a CUDA compiler.
DeviceLoopKernels cuda_loop_kernels();

/// PickGuesses by a kernel.
PickGuesses pick_with(const StepKernels& kernels);

/// A graph that was captured, for reports.
struct CapturedGraph {
  int32_t num_sequences = 0;
  int32_t num_nodes = 0;    // of each sequence's tree
  int64_t max_context = 0;  // positions below this

  auto operator<=>(const CapturedGraph&) const = default;
};

/// Decodes the sequences of one target with one tree and one rule. The same text as the eager loop
/// with the same kernels; a tree that no longer fits near the end of a text or of the context is
/// computed all the same and its tokens cut off, so a typical rule may choose another path in a
/// text's last step.
///
/// Thread safety: one thread at a time.
class DeviceDecoder {
 public:
  /// @param target  over a Llama with on_device(). Kept by reference, as the heads; its slots are
  ///                taken and given back as decode() does.
  /// @param heads   null: plain decoding.
  /// @param shape   ignored without heads.
  DeviceDecoder(BackboneTarget& target, DeviceHeads* heads, const TreeShape& shape,
                const DeviceJudge& judge, const DeviceLoopKernels& kernels);

  /// As medusa::decode(). Tokens are emitted without an output.
  DecodeTimes decode(const std::function<std::optional<DecodeRequest>()>& next,
                     const std::function<bool(size_t, const DecodeStats&)>& finished);

  /// Of this decoder so far, in order.
  std::vector<CapturedGraph> graphs() const;

  /// Of a step of this kind, which must have run.
  int64_t num_kernels(const CapturedGraph& kind) const { return graphs_.at(kind).num_kernels; }

  int32_t num_nodes() const { return step_.num_nodes(); }

 private:
  struct Sequence;
  struct Posted;

  struct StepKind {
    std::unique_ptr<DeviceGraph> graph;  // null: one step has run so
    int64_t num_kernels = 0;
  };

  void start(size_t index, DecodeRequest request);
  void replay(Posted& posted);
  void take(Posted& posted);
  void drop_finished();

  BackboneTarget& target_;
  DeviceLlama& llama_;
  DeviceLoopKernels kernels_;
  DeviceStep step_;
  std::map<CapturedGraph, StepKind> graphs_;
  int64_t generation_ = 0;                       // of the buffers that they were captured with
  std::vector<std::shared_ptr<Sequence>> open_;  // by place
};

}  // namespace medusa
