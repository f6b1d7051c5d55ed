// What computes the heads' drafts on the host's request: the reference (reference_heads.h) or our
// CPU kernels (cpu/cpu_heads.h). Heads that fill a tree on a GPU, without the host, are another
// thing (cuda/device_heads.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backbone/execution_context.h"
#include "heads/head_drafts.h"
#include "heads/head_query.h"
#include "heads/medusa_heads.h"

namespace medusa {

/// The residual layers and outputs of all heads, without the prefix layer. Backends give the same
/// numbers but for the order of sums, and round in the same places. A position's drafts of one
/// head depend neither on the positions nor on the heads that are computed beside it (in every
/// dtype in which backbone/linear.h promises so).
///
/// Thread safety: none (scratch buffers).
class HeadsBackend {
 public:
  virtual ~HeadsBackend() = default;

  /// Computes the drafts of a query, as HeadsRunner::draft() describes it.
  virtual void draft(const HeadQuery& query, HeadDrafts& drafts) = 0;

  /// Of corrected heads: computes the logits of the first heads at one position before they are
  /// corrected, for correct(), and head 0's drafts, which are not.
  /// @param query  of one position and its root; its first head is 0.
  virtual void begin(const HeadQuery& query, HeadDrafts& drafts) = 0;

  /// Computes a head's drafts after each of M tokens of the head before: the same bits as draft()
  /// gives where backbone/linear.h promises so.
  /// @param head    1 to those that begin() was asked for.
  /// @param tokens  [M]
  virtual void correct(int64_t head, std::span<const TokenId> tokens, HeadDrafts& drafts) = 0;

  virtual const char* name() const = 0;  // of what multiplies, for people
};

/// The fastest that runs beside this backbone; the reference for Kernels::Reference and where no
/// other does. Packs what it multiplies with; of the backbone it keeps the embedding (not a copy).
/// @param top_k  1 to V_t.
std::unique_ptr<HeadsBackend> make_heads_backend(const MedusaHeads& heads, const Weights& backbone,
                                                 int64_t top_k, const ExecutionContext& execution);

}  // namespace medusa
