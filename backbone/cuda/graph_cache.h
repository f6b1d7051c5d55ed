// Work that comes again and again, captured as CUDA graphs: one for each kind of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backbone/cuda/device_runtime.h"
#include "backbone/cuda/device_types.h"

namespace medusa {

/// What a graph over a context is captured for: 256 positions, or twice, four times, … as many, at
/// most those of the cache.
/// @param most  positions that there may be.
inline int64_t captured_context(int64_t most, int64_t capacity) {
  int64_t context = 256;
  while (context < most) context *= 2;
  return std::min(context, capacity);
}

/// The first work of its kind runs kernel by kernel, since to load a kernel is not allowed while a
/// graph is captured. The second is captured, and later ones are that graph.
///
/// Thread safety: none.
template <typename Kind>
class GraphCache {
 public:
  explicit GraphCache(DeviceRuntime& runtime) : runtime_(runtime) {}

  /// @param generation  of the buffers that the work uses: graphs of another one are forgotten.
  /// @param work        as DeviceRuntime::capture() wants it; the same for the same kind.
  void run(const Kind& kind, int64_t generation, const std::function<void(DeviceStream)>& work) {
    if (generation_ != generation || (std::ssize(entries_) >= kMostKinds && !has(kind)))
      entries_.clear();
    generation_ = generation;
    const auto [found, is_first] = entries_.try_emplace(kind);
    Entry& entry = found->second;
    if (is_first) {
      const int64_t before = num_started_kernels;
      work(nullptr);
      entry.num_kernels = num_started_kernels - before;
      return;
    }
    if (!entry.graph) entry.graph = runtime_.capture(work);
    entry.graph->replay();
  }

  /// Lists the kinds that were captured, in order.
  std::vector<Kind> captured() const {
    std::vector<Kind> out;
    for (const auto& [kind, entry] : entries_)
      if (entry.graph) out.push_back(kind);
    return out;
  }

  /// Counts the kernels of a kind, which must have run.
  int64_t num_kernels(const Kind& kind) const { return entries_.at(kind).num_kernels; }

 private:
  static constexpr int64_t kMostKinds = 256;  // a graph takes about a megabyte

  struct Entry {
    std::unique_ptr<DeviceGraph> graph;  // null: such work has run once
    int64_t num_kernels = 0;
  };
  bool has(const Kind& kind) const { return entries_.find(kind) != entries_.end(); }

  DeviceRuntime& runtime_;
  std::map<Kind, Entry> entries_;
  int64_t generation_ = 0;
};

}  // namespace medusa
