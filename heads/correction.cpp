#include "heads/correction.h"

#include <ATen/ATen.h>

#include "heads/head_init.h"
#include "heads/medusa_heads.h"

namespace medusa {

DraftCorrection make_correction(const Weights& backbone, std::span<const TokenId> kept_tokens,
                                int64_t num_heads, int64_t rank) {
  const at::Device device = backbone.embedding.device();
  at::Tensor embeddings = backbone.embedding;
  if (!kept_tokens.empty())
    embeddings = embeddings.index_select(
        0,
        at::tensor(at::makeArrayRef(kept_tokens.data(), kept_tokens.size()), at::kInt).to(device));
  // Their mean, which the factors leave out, stands for what is not known: zero.
  const at::Tensor known = factorize_output(embeddings * embedding_gain(backbone), rank).out;
  DraftCorrection correction{at::cat({known, at::zeros({1, rank}, known.options())}), {}};
  for (int64_t head = 1; head < num_heads; ++head)
    correction.factors.push_back(at::zeros_like(known));
  return correction;
}

at::Tensor correction_rows(const DraftCorrection& correction, std::span<const int32_t> rows,
                           at::ScalarType dtype) {
  std::vector<int32_t> known(rows.begin(), rows.end());
  for (int32_t& row : known)
    if (row < 0) row = correction.unknown_row();
  return correction.table.index_select(0, at::tensor(known, at::kInt).to(correction.table.device()))
      .to(dtype);
}

}  // namespace medusa
