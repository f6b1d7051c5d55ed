#include "tools/bench/method.h"

namespace medusa {

bool Method::same_text() const {
  if (temperature() == 0) return lossless;
  const RuleKind kind = resolved_rule(settings);
  return kind == RuleKind::Match || kind == RuleKind::Nucleus;  // the same rule by two names
}

Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target) {
  auto decoder = make_decoder(settings, parts, target);
  return {settings, make_rule(settings)->lossless(), std::move(decoder)};
}

}  // namespace medusa
