// The heads at inference: hidden states in, the top-k drafts of every head out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "backbone/execution_context.h"
#include "heads/head_drafts.h"
#include "heads/head_query.h"
#include "heads/heads_backend.h"
#include "heads/medusa_heads.h"

namespace medusa {

class PrefixModel;

/// A position's drafts of one head depend neither on the positions beside it nor on which other
/// heads run (in every dtype in which backbone/linear.h promises so).
///
/// Thread safety: none (scratch buffers).
class HeadsRunner {
 public:
  /// Computes in the backbone's dtype, on its device: with our own kernels where they run
  /// (cpu/cpu_heads.h), else with LibTorch's ops. Keeps packed copies of what it multiplies with,
  /// and the backbone's embedding; heads and backbone may go afterwards.
  /// @param top_k  1 to V_t.
  /// @throws UserError  top_k is more than the heads' output can draft.
  HeadsRunner(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
              const ExecutionContext& execution = {});
  ~HeadsRunner();

  int64_t num_heads() const { return num_heads_; }
  int64_t top_k() const { return top_k_; }
  const char* kernels() const { return backend_->name(); }  // which code computes, for people

  /// Says whether drafts depend on the tokens between the root and the one drafted.
  bool depends_on_paths() const { return medusa::depends_on_paths(config_); }
  /// Says whether they depend on the last of these alone: begin() and correct() may be called.
  bool is_corrected() const { return config_.correction_rank > 0; }

  /// The layer that stands between the backbone's states and these heads; null: none does. Whoever
  /// asks draft() gives states that it has run over.
  PrefixModel* prefix() const { return prefix_.get(); }

  /// @returns  valid until the next call.
  const HeadDrafts& draft(const HeadQuery& query);

  /// Of corrected heads, computes what the first heads make of one position, whatever is drafted
  /// there, once for all calls of correct().
  /// @param hidden  [1, H]
  /// @returns       head 0's drafts; valid until the next call of any function but correct().
  const HeadDrafts& begin(const at::Tensor& hidden, TokenId root, int64_t num_heads);

  /// A head's drafts at that position after each of some drafts of the head before.
  /// @param head    1 to below begin()'s num_heads.
  /// @param tokens  [M], at least one.
  /// @returns       valid until the next call.
  const HeadDrafts& correct(int64_t head, std::span<const TokenId> tokens);

  /// The first heads at M positions of a text, position m's root being text[m]. Heads that depend
  /// on paths read the text's own tokens, as if the heads before them had been right.
  /// @param hidden     [H] or [M, H] in the backbone's dtype: state at the token before each root.
  /// @param text       at least the M roots; if depends_on_paths(), num_heads - 1 tokens more.
  /// @param num_heads  1 to num_heads(): a tree of that depth needs no others.
  const HeadDrafts& draft(const at::Tensor& hidden, std::span<const TokenId> text,
                          int64_t num_heads);

  /// Drafts with all heads.
  const HeadDrafts& draft(const at::Tensor& hidden, std::span<const TokenId> text) {
    return draft(hidden, text, num_heads_);
  }

  /// Drafts with all heads at the first M positions of an answer, as a decoder runs them there: the
  /// prefix layer, if there is one, runs over the answer first.
  /// @param hidden  [M, H] in the backbone's dtype: state at the token before each root.
  /// @param answer  as draft()'s text, from the answer's first token on.
  const HeadDrafts& draft_along(const at::Tensor& hidden, std::span<const TokenId> answer);

 private:
  void check(const HeadQuery& query) const;

  const HeadsConfig config_;
  const int64_t num_heads_, hidden_size_, vocab_size_, top_k_;
  std::unique_ptr<HeadsBackend> backend_;
  std::unique_ptr<PrefixModel> prefix_;
  HeadDrafts drafts_, begun_;
};

}  // namespace medusa
