// Where the time of a pass goes: a stopwatch that a pass reports to while somebody looks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace medusa {

/// The steps of a pass in their order; those of a layer are summed over the layers. Our CPU path
/// computes some of them within another: what Rope and CacheWrite take is part of its Qkv, and
/// Activation of its GateUp.
enum class ForwardStage {
  Embedding,
  AttentionNorm,
  Qkv,
  Rope,
  CacheWrite,
  Attention,
  Output,
  MlpNorm,
  GateUp,
  Activation,
  Down,
  FinalNorm,
  LmHead,
};

inline constexpr size_t kNumForwardStages = static_cast<size_t>(ForwardStage::LmHead) + 1;

/// Adds up how long each part took. Of a pass by several threads one reports, so that a part lasts
/// until all threads have finished it.
///
/// Thread safety: none.
class StageTimer {
 public:
  /// @param wait  called before each look at the time: for devices that work on behind our back.
  explicit StageTimer(std::function<void()> wait = {}) : wait_(std::move(wait)) {}

  /// What has passed since the last record() belongs to no stage.
  void begin() { last_ = now(); }

  /// What has passed since the last record() or begin() belongs to this stage.
  void record(ForwardStage stage) {
    const auto at = now();
    seconds_[static_cast<size_t>(stage)] += std::chrono::duration<double>(at - last_).count();
    last_ = at;
  }

  void reset() { seconds_ = {}; }

  /// Entry by ForwardStage.
  const std::array<double, kNumForwardStages>& seconds() const { return seconds_; }

 private:
  std::chrono::steady_clock::time_point now() const {
    if (wait_) wait_();
    return std::chrono::steady_clock::now();
  }

  std::function<void()> wait_;
  std::array<double, kNumForwardStages> seconds_{};
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace medusa
