// What does not fit: config.json with the tensors, the tensors with a model.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "heads/foreign/foreign_heads.h"

namespace medusa {
namespace {

constexpr const char* kHintRemedy = "; correct it, or remove config.json, which is only a hint";

int64_t token_at(const SafetensorsEntry& map, size_t i) {
  if (map.dtype == "I32") {
    int32_t value = 0;
    std::memcpy(&value, map.bytes.data() + 4 * i, 4);
    return value;
  }
  int64_t value = 0;
  std::memcpy(&value, map.bytes.data() + 8 * i, 8);
  return value;
}

/// Empty where the map is a list of different tokens of the vocabulary.
std::string token_map_fault(const SafetensorsEntry& map, int64_t vocab_size) {
  std::set<int64_t> seen;
  for (size_t i = 0; i < static_cast<size_t>(map.shape[0]); ++i) {
    const int64_t token = token_at(map, i);
    if (token < 0 || token >= vocab_size)
      return fmt::format("names token {}, expected tokens below {}", token, vocab_size);
    if (!seen.insert(token).second)
      return fmt::format("names token {} twice, expected each once", token);
  }
  return {};
}

}  // namespace

std::vector<HeadMisfit> hint_misfits(const ForeignHeads& heads, std::optional<int64_t> num_heads) {
  std::vector<HeadMisfit> out;
  const HeadHints& hints = heads.files.hints;
  const std::string file = hints.file.string();
  const auto differ = [&](const char* code, const char* what, const std::optional<int64_t>& hint,
                          int64_t found, const std::string& remedy) {
    if (hint && *hint != found)
      out.push_back({code, fmt::format("{}: says {} {}, the tensors are of {}, expected the same{}",
                                       file, *hint, what, found, remedy)});
  };
  if (!num_heads)
    differ("head_count", "heads", hints.num_heads, heads.num_heads,
           fmt::format("; say --num-heads {} for all that are stored, or correct config.json",
                       heads.num_heads));
  differ("layer_count", "layers per head", hints.layers_per_head, heads.layers_per_head,
         kHintRemedy);
  differ("hidden_size", "numbers in a hidden state", hints.hidden_size, heads.hidden_size,
         kHintRemedy);
  if (hints.has_bias.value_or(false) && !heads.has_bias)
    out.push_back({"bias_missing", fmt::format("{}: says that layers have a bias, the tensors have "
                                               "none, expected the same{}",
                                               file, kHintRemedy)});
  if (hints.logit_scale != 1)
    out.push_back({"logit_scale",
                   fmt::format("{}: multiplies logits by {}, expected 1; fold the factor into the "
                               "outputs, then remove it",
                               file, hints.logit_scale)});
  const auto vocab = hints.truncated_vocab_size ? hints.truncated_vocab_size : hints.vocab_size;
  if (heads.output_rows > 0 && heads.token_map == nullptr)
    differ("vocab_size", "tokens", vocab, heads.output_rows, kHintRemedy);
  return out;
}

void check_hints(const ForeignHeads& heads, std::optional<int64_t> num_heads) {
  const auto misfits = hint_misfits(heads, num_heads);
  if (!misfits.empty()) throw UserError(misfits.front().text);
}

std::vector<HeadMisfit> model_misfits(const ForeignHeads& heads, const ModelConfig& model) {
  std::vector<HeadMisfit> out;
  const std::string path = heads.files.path.string();
  if (heads.hidden_size != model.hidden_size)
    out.push_back({"hidden_size", fmt::format("{}: these heads read states of {} numbers, the "
                                              "backbone's have {}, expected the same; use heads "
                                              "that were trained on this model",
                                              path, heads.hidden_size, model.hidden_size)});
  if (heads.token_map == nullptr) {
    if (heads.output_rows > 0 && heads.output_rows != model.vocab_size)
      out.push_back({"other_vocabulary",
                     fmt::format("{}: these heads draft among {} tokens, the backbone has {}, "
                                 "expected the same; use heads that were trained on this model",
                                 path, heads.output_rows, model.vocab_size)});
    return out;
  }
  const int64_t mapped = heads.token_map->shape[0];
  if (heads.output_rows != mapped && heads.output_rows != model.vocab_size)
    out.push_back({"token_map",
                   fmt::format("{}: token_map lists {} tokens, the outputs have {} rows, expected "
                               "as many or {}; export the heads again",
                               path, mapped, heads.output_rows, model.vocab_size)});
  if (const std::string fault = token_map_fault(*heads.token_map, model.vocab_size); !fault.empty())
    out.push_back({"token_map", fmt::format("{}: token_map {}; export the heads again, or use "
                                            "heads of this model",
                                            path, fault)});
  return out;
}

}  // namespace medusa
