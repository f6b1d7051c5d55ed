#include "heads/head_guesser.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "heads/fused_heads.h"
#include "heads/plain_heads.h"

namespace medusa {

HeadGuesser::HeadGuesser(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                         Kernels kernels)
    : num_heads_(heads.config.num_heads),
      hidden_size_(heads.hidden_size),
      vocab_size_(heads.vocab_size),
      top_k_(top_k) {
  const c10::InferenceMode no_grad;
  if (top_k < 1 || top_k > heads.output_rows())
    throw UserError(fmt::format(
        "heads: top_k is {}, expected 1 to {}, the tokens that the heads can guess; lower it",
        top_k, heads.output_rows()));
  if (kernels == Kernels::Auto && FusedHeads::supports(backbone))
    fused_ = std::make_unique<FusedHeads>(heads, backbone, top_k);
  else
    plain_ = std::make_unique<PlainHeads>(heads, backbone, top_k, kernels);
}

HeadGuesser::~HeadGuesser() = default;
const char* HeadGuesser::kernels() const { return fused_ ? fused_->name() : "LibTorch"; }

const HeadGuesses& HeadGuesser::guess(const at::Tensor& hidden, std::span<const TokenId> roots,
                                      int64_t num_heads) {
  const c10::InferenceMode no_grad;
  const auto num_positions = static_cast<int64_t>(roots.size());
  MEDUSA_ASSERT(num_positions > 0 && hidden.numel() == num_positions * hidden_size_, hidden.numel(),
                num_positions, hidden_size_);
  MEDUSA_ASSERT(num_heads >= 1 && num_heads <= num_heads_, num_heads, num_heads_);
  for (const TokenId root : roots) MEDUSA_ASSERT(root >= 0 && root < vocab_size_, root);
  if (fused_)
    fused_->guess(hidden, roots, num_heads, guesses_);
  else
    plain_->guess(hidden, roots, num_heads, guesses_);
  return guesses_;
}

}  // namespace medusa
