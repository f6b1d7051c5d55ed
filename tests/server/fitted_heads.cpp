#include "tests/server/fitted_heads.h"

#include <ATen/ATen.h>

#include "infer/backbone_target.h"
#include "infer/decoder.h"
#include "infer/drafter.h"
#include "infer/rules/greedy_rule.h"

namespace medusa::fixtures {
namespace {

constexpr TokenId kFirst = 1;

}  // namespace

std::vector<TokenId> own_text(const Model& loaded, int32_t num_tokens) {
  BackboneTarget target(*loaded.llama, 1, loaded.context);
  std::vector<TokenId> text;
  DecodeRequest request;
  request.prompt = {kFirst};
  request.limits.max_new_tokens = num_tokens;
  request.emit = [&text](const EmittedToken& token) {
    text.push_back(token.id);
    return true;
  };
  decode_one(
      target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); }, std::move(request));
  return text;
}

MedusaHeads fitted_heads(const Model& loaded, int64_t num_heads) {
  std::vector<TokenId> text = own_text(loaded, static_cast<int32_t>(loaded.context) - 1);
  text.insert(text.begin(), kFirst);
  KvCache cache = loaded.llama->make_cache(1, loaded.context);
  const Segment whole{cache.open(), text, {}};
  const at::Tensor states =
      loaded.llama->forward({&whole, 1}, cache).to(at::kCPU, at::kDouble, false, true);

  HeadsConfig config;
  config.num_heads = num_heads;
  config.input = HeadInput::Root;
  config.output = HeadOutput::Own;
  MedusaHeads heads = make_heads(config, loaded.llama->weights(), {}, 1);
  for (int64_t k = 0; k < num_heads; ++k) {
    // Row i is the state of token i; head k drafts token i + 2 + k from it.
    const int64_t rows = states.size(0) - 2 - k;
    const at::Tensor x = states.narrow(0, 0, rows);
    at::Tensor y = at::zeros({rows, heads.vocab_size}, at::kDouble);
    for (int64_t i = 0; i < rows; ++i)
      y.index_put_({at::tensor(i), at::tensor(int64_t{text[static_cast<size_t>(i + 2 + k)]})},
                   at::tensor(10.0, at::kDouble));
    const at::Tensor gram = x.t().matmul(x) + 1e-3 * at::eye(x.size(1), at::kDouble);
    heads.outputs[static_cast<size_t>(k)].copy_(at::linalg_solve(gram, x.t().matmul(y)).t());
  }
  return heads;
}

}  // namespace medusa::fixtures
