#include "heads/foreign/head_names.h"

#include <charconv>
#include <span>

#include "base/check.h"

namespace medusa {
namespace {

/// '#' stands for the head, '@' for the layer.
struct NamePattern {
  HeadTensorKind part;
  std::string_view text;
};

constexpr NamePattern kPlain[] = {{HeadTensorKind::Weight, "#.@.linear.weight"},
                                  {HeadTensorKind::Bias, "#.@.linear.bias"},
                                  {HeadTensorKind::Output, "#.@.weight"}};
constexpr NamePattern kMedusa2[] = {{HeadTensorKind::Weight, "medusa_head.#.@.linear.weight"},
                                    {HeadTensorKind::Bias, "medusa_head.#.@.linear.bias"},
                                    {HeadTensorKind::Output, "medusa_head.#.@.weight"}};
constexpr NamePattern kModelOpt[] = {
    {HeadTensorKind::Weight, "medusa_heads.#.@.linear.weight"},
    {HeadTensorKind::Bias, "medusa_heads.#.@.linear.bias"},
    {HeadTensorKind::Output, "medusa_heads.#.@.weight"},
    {HeadTensorKind::Scale, "medusa_heads.#.@.linear.input_scale"},
    {HeadTensorKind::Scale, "medusa_heads.#.@.linear.weight_scale"}};
constexpr NamePattern kTensorRtLlm[] = {
    {HeadTensorKind::Weight, "medusa_heads.#.medusa_layers.@.linear.weight"},
    {HeadTensorKind::Bias, "medusa_heads.#.medusa_layers.@.linear.bias"},
    {HeadTensorKind::Output, "medusa_heads.#.lm_head.weight"}};
// vLLM removes the prefix "medusa_heads." before it looks at a name; so do we.
constexpr NamePattern kVllm[] = {{HeadTensorKind::Weight, "blocks.#.layers.@.weight"},
                                 {HeadTensorKind::Bias, "blocks.#.layers.@.bias"},
                                 {HeadTensorKind::Output, "lm_heads.#.weight"},
                                 {HeadTensorKind::SharedOutput, "lm_head.weight"},
                                 {HeadTensorKind::TokenMap, "token_map"}};
constexpr std::string_view kVllmPrefix = "medusa_heads.";

std::span<const NamePattern> patterns(HeadLayout layout) {
  switch (layout) {
    case HeadLayout::FasterDecoding:
    case HeadLayout::TgiV2:
      return kPlain;
    case HeadLayout::Medusa2:
      return kMedusa2;
    case HeadLayout::Vllm:
      return kVllm;
    case HeadLayout::TensorRtLlm:
      return kTensorRtLlm;
    case HeadLayout::ModelOpt:
      return kModelOpt;
  }
  MEDUSA_ASSERT(false, "a layout without names");
  return {};
}

/// Takes a small number without leading zeros from the front of text.
bool take_number(std::string_view& text, int64_t& number) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 3 || (digits > 1 && text[0] == '0')) return false;
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return true;
}

bool matches(std::string_view pattern, std::string_view text, HeadTensorName& name) {
  name.layer = -1;
  for (const char c : pattern) {
    if (c == '#' || c == '@') {
      if (!take_number(text, c == '#' ? name.head : name.layer)) return false;
    } else {
      if (text.empty() || text[0] != c) return false;
      text.remove_prefix(1);
    }
  }
  return text.empty();
}

}  // namespace

std::optional<HeadTensorName> parse_head_name(HeadLayout layout, std::string_view name) {
  if (layout == HeadLayout::Vllm && name.starts_with(kVllmPrefix))
    name.remove_prefix(kVllmPrefix.size());
  for (const NamePattern& pattern : patterns(layout)) {
    HeadTensorName found{pattern.part};
    if (matches(pattern.text, name, found)) return found;
  }
  return std::nullopt;
}

std::optional<HeadLayout> layout_of_name(std::string_view name) {
  for (const HeadLayout layout : {HeadLayout::FasterDecoding, HeadLayout::Medusa2, HeadLayout::Vllm,
                                  HeadLayout::TensorRtLlm, HeadLayout::ModelOpt}) {
    const auto found = parse_head_name(layout, name);
    if (found && found->part != HeadTensorKind::SharedOutput &&
        found->part != HeadTensorKind::TokenMap)
      return layout;
  }
  return std::nullopt;
}

std::string head_tensor_name(HeadLayout layout, const HeadTensorName& name) {
  for (const NamePattern& pattern : patterns(layout)) {
    if (pattern.part != name.part) continue;
    std::string out;
    for (const char c : pattern.text)
      if (c == '#' || c == '@')
        out += std::to_string(c == '#' ? name.head : name.layer);
      else
        out += c;
    return out;
  }
  MEDUSA_ASSERT(false, enum_name(layout), static_cast<int>(name.part));
  return {};
}

}  // namespace medusa
