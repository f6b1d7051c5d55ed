// Published heads -> our own.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backbone/files/safetensors.h"
#include "base/error.h"
#include "heads/foreign/foreign_heads.h"

namespace medusa {
namespace {

at::ScalarType scalar_type(const std::string& dtype) {
  return dtype == "F16" ? at::kHalf : dtype == "BF16" ? at::kBFloat16 : at::kFloat;
}

std::vector<TokenId> mapped_tokens(const SafetensorsEntry& map) {
  const size_t item = map.dtype == "I32" ? 4 : 8;
  std::vector<TokenId> tokens(static_cast<size_t>(map.shape[0]));
  for (size_t i = 0; i < tokens.size(); ++i)  // little-endian, and below 2^31 as was checked
    std::memcpy(&tokens[i], map.bytes.data() + item * i, sizeof(TokenId));
  return tokens;
}

class Importer {
 public:
  Importer(const ForeignHeads& from, const Weights& backbone, int64_t num_heads)
      : from_(from), backbone_(backbone), num_heads_(num_heads) {}

  ImportedHeads run();

 private:
  void take_blocks();
  void take_outputs();
  at::Tensor float_tensor(const SafetensorsEntry& entry);
  /// Whether a stored output is the backbone's LM head (its kept rows), as its type rounds it.
  bool is_lm_head(const SafetensorsEntry& output) const;
  /// A stored output's rows in the order of kept_tokens.
  at::Tensor kept_rows(const at::Tensor& output) const;

  const ForeignHeads& from_;
  const Weights& backbone_;
  int64_t num_heads_;
  ImportedHeads out_;
  std::vector<int64_t> row_order_;  // stored row of each of ours; empty: the same
};

at::Tensor Importer::float_tensor(const SafetensorsEntry& entry) {
  const at::Tensor stored = entry_tensor(entry);
  if (stored.scalar_type() != out_.dtype) out_.dtype = at::kFloat;  // holds both
  at::Tensor out = stored.to(at::kFloat);
  if (!out.isfinite().all().item<bool>())
    throw UserError(
        fmt::format("{}: tensor '{}' holds a number that is not finite, expected numbers; download "
                    "the heads again, or choose others",
                    from_.files.path.string(), entry.name));
  return out;
}

void Importer::take_blocks() {
  MedusaHeads& heads = out_.heads;
  const auto count = static_cast<size_t>(num_heads_ * from_.layers_per_head);
  for (size_t i = 0; i < count; ++i)
    heads.blocks.push_back({float_tensor(*from_.weights[i]),
                            from_.biases[i] != nullptr ? float_tensor(*from_.biases[i])
                                                       : at::zeros({from_.hidden_size}, at::kFloat),
                            {}});
  if (!from_.has_bias) out_.notes.emplace_back("the layers have no bias: zeros stand for it");
}

bool Importer::is_lm_head(const SafetensorsEntry& output) const {
  const at::Tensor stored = entry_tensor(output);
  at::Tensor expected = backbone_.lm_head;
  if (!out_.heads.kept_tokens.empty() && stored.size(0) != expected.size(0)) {
    const at::Tensor rows = at::tensor(mapped_tokens(*from_.token_map), at::kInt);
    expected = expected.index_select(0, rows);
  }
  return at::equal(stored, expected.to(stored.scalar_type()));
}

at::Tensor Importer::kept_rows(const at::Tensor& output) const {
  if (out_.heads.kept_tokens.empty()) return output;
  if (output.size(0) == backbone_.config.vocab_size &&
      output.size(0) != static_cast<int64_t>(row_order_.size()))
    return output.index_select(0, at::tensor(out_.heads.kept_tokens, at::kInt));
  return output.index_select(0, at::tensor(row_order_, at::kLong));
}

/// Ours are ascending, vLLM's need not be.
void sort_tokens(std::vector<TokenId>& tokens, std::vector<int64_t>& row_order) {
  row_order.resize(tokens.size());
  std::iota(row_order.begin(), row_order.end(), 0);
  const auto token = [&](int64_t row) { return tokens[static_cast<size_t>(row)]; };
  std::sort(row_order.begin(), row_order.end(),
            [&](int64_t a, int64_t b) { return token(a) < token(b); });
  std::sort(tokens.begin(), tokens.end());
}

void Importer::take_outputs() {
  MedusaHeads& heads = out_.heads;
  const bool truncated = from_.token_map != nullptr;
  if (truncated) {
    heads.kept_tokens = mapped_tokens(*from_.token_map);
    sort_tokens(heads.kept_tokens, row_order_);
    heads.config.output_size = heads.output_rows();
  }
  std::vector<const SafetensorsEntry*> outputs(
      from_.outputs.begin(), from_.outputs.begin() + (from_.outputs.empty() ? 0 : num_heads_));
  if (from_.shared_output != nullptr)
    outputs.assign(static_cast<size_t>(num_heads_), from_.shared_output);
  const bool shared = std::all_of(outputs.begin(), outputs.end(),
                                  [&](const auto* each) { return is_lm_head(*each); });
  if (shared) {
    heads.config.output = truncated ? HeadOutput::TruncatedShared : HeadOutput::Shared;
    if (!outputs.empty())
      out_.notes.emplace_back("the stored outputs are the backbone's LM head: it is shared");
    return;
  }
  heads.config.output = truncated ? HeadOutput::TruncatedOwn : HeadOutput::Own;
  if (from_.shared_output != nullptr)
    out_.notes.emplace_back(
        "the one stored output is not this backbone's LM head: every head keeps a copy of it");
  for (const SafetensorsEntry* output : outputs)
    heads.outputs.push_back(kept_rows(float_tensor(*output)));
}

ImportedHeads Importer::run() {
  MedusaHeads& heads = out_.heads;
  out_.dtype = scalar_type(from_.dtype);
  heads.config.num_heads = num_heads_;
  heads.config.layers_per_head = from_.layers_per_head;
  heads.config.input = HeadInput::Hidden;
  heads.hidden_size = backbone_.config.hidden_size;
  heads.vocab_size = backbone_.config.vocab_size;
  take_blocks();
  take_outputs();
  if (num_heads_ < from_.num_heads)
    out_.notes.push_back(
        fmt::format("the first {} of {} heads are kept", num_heads_, from_.num_heads));
  return std::move(out_);
}

}  // namespace

ImportedHeads import_heads(const ForeignHeads& heads, const Weights& backbone,
                           std::optional<int64_t> num_heads) {
  const auto misfits = model_misfits(heads, backbone.config);
  if (!misfits.empty()) throw UserError(misfits.front().text);
  const int64_t wanted = num_heads.value_or(heads.num_heads);
  if (wanted > heads.num_heads)
    throw UserError(
        fmt::format("{}: holds {} heads, --num-heads asks for {}, expected at most as many "
                    "as there are; ask for fewer",
                    heads.files.path.string(), heads.num_heads, wanted));
  if (heads.layers_per_head > 8)
    throw UserError(fmt::format("{}: heads of {} layers, expected at most 8; use other heads",
                                heads.files.path.string(), heads.layers_per_head));
  if (wanted > 16)
    throw UserError(fmt::format("{}: {} heads, expected at most 16; keep fewer with --num-heads",
                                heads.files.path.string(), wanted));
  return Importer(heads, backbone, wanted).run();
}

}  // namespace medusa
