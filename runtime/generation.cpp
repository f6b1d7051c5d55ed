#include "runtime/generation.h"

#include <ATen/core/Tensor.h>

#include <cstring>
#include <memory>
#include <utility>

#include "base/interrupt.h"
#include "infer/decoder.h"
#include "infer/factory.h"

namespace medusa {
namespace {

/// Appends one state as bfloat16 bits: a copy where it is bfloat16 already.
void append_state(const at::Tensor& hidden, int32_t row, std::vector<uint16_t>& bits) {
  const at::Tensor state = hidden[row].to(at::kCPU, at::kBFloat16).contiguous();
  const auto* data = static_cast<const uint16_t*>(state.const_data_ptr());
  bits.insert(bits.end(), data, data + state.numel());
}

/// [n, H] bfloat16 on the CPU, as bits.
std::vector<uint16_t> bits_of(const at::Tensor& states) {
  const auto* data = static_cast<const uint16_t*>(states.const_data_ptr());
  return {data, data + states.numel()};
}

}  // namespace

GenerateFunction make_generate_function(TargetModel& target, const SamplingConfig& sampling,
                                        std::vector<TokenId> eos, int64_t hidden_size) {
  InferConfig config;
  config.drafter = DrafterKind::None;
  config.sampling = sampling;
  const std::shared_ptr<AcceptanceRule> rule = make_rule(config);
  const DrafterFactory make_drafter = make_drafter_factory(config, {});
  return [&target, rule, make_drafter, eos = std::move(eos), hidden_size](
             std::span<const GenerateRequest> requests,
             const std::function<bool(size_t, GeneratedText)>& finished) {
    std::vector<GeneratedText> texts(requests.size());
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == requests.size()) return std::nullopt;
      const GenerateRequest& request = requests[taken];
      GeneratedText& text = texts[taken++];
      DecodeRequest decode;
      decode.prompt = request.prompt;
      decode.limits = {.max_new_tokens = request.max_new_tokens, .max_nodes = 1, .eos = eos};
      decode.random = request.random;
      decode.emit = [&text, hidden_size](const EmittedToken& token) {
        text.tokens.push_back(token.id);
        if (hidden_size > 0) append_state(token.output->hidden, token.row, text.hidden);
        return !interrupted();
      };
      return decode;
    };
    decode(target, *rule, make_drafter, next, [&](size_t i, const DecodeStats&) {
      return !interrupted() && finished(i, std::exchange(texts[i], {}));
    });
  };
}

GenerateFunction make_reading_function(BackboneTarget& target, std::span<const Sample> samples,
                                       bool with_states) {
  return
      [&target, samples, with_states](std::span<const GenerateRequest> requests,
                                      const std::function<bool(size_t, GeneratedText)>& finished) {
        for (size_t i = 0; i < requests.size() && !interrupted(); ++i) {
          const Sample& sample = samples[requests[i].index];
          const std::span<const TokenId> tokens = sample.tokens;
          GeneratedText text{{tokens.begin() + sample.answer_start, tokens.end()}, {}};
          if (with_states)  // nothing is drafted from the last token
            text.hidden = bits_of(
                target.states(tokens.first(tokens.size() - 1)).slice(0, sample.answer_start - 1));
          if (!finished(i, std::move(text))) return;
        }
      };
}

}  // namespace medusa
