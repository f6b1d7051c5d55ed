// How text is decoded: the settings of drafter, rule and sampling.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/fields.h"
#include "infer/rules/typical_rule.h"
#include "infer/sampling.h"

namespace medusa {

enum class DrafterKind { None, Medusa };

enum class RuleKind {
  Auto,  // greedy at temperature 0, match above it
  Greedy,
  Match,
  Typical,
};

template <>
struct EnumNames<DrafterKind> {
  static constexpr std::array<std::pair<const char*, DrafterKind>, 2> values{
      {{"none", DrafterKind::None}, {"medusa", DrafterKind::Medusa}}};
};

template <>
struct EnumNames<RuleKind> {
  static constexpr std::array<std::pair<const char*, RuleKind>, 4> values{
      {{"auto", RuleKind::Auto},
       {"greedy", RuleKind::Greedy},
       {"match", RuleKind::Match},
       {"typical", RuleKind::Typical}}};
};

struct InferConfig {
  DrafterKind drafter = DrafterKind::Medusa;
  RuleKind rule = RuleKind::Auto;
  SamplingConfig sampling;
  TypicalConfig typical;
  int32_t max_new_tokens = 256;

  template <typename Fields>
  void fields(Fields& f) {
    f("drafter", drafter, "who proposes tokens");
    f("rule", rule, "which proposals stand; auto: greedy at temperature 0, match above it");
    sampling.fields(f);
    typical.fields(f);
    f("max_new_tokens", max_new_tokens, "most tokens of one answer", at_least(1));
  }
  /// @throws UserError  the rule cannot work at this temperature.
  void validate() const;
};

/// The rule that Auto stands for.
RuleKind resolved_rule(const InferConfig& config);

}  // namespace medusa
