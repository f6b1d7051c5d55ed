#include "tools/bench/method.h"

namespace medusa {

bool Method::same_text() const {
  if (temperature() == 0) return rule->lossless();
  const RuleKind kind = resolved_rule(settings);
  return kind == RuleKind::Match || kind == RuleKind::Nucleus;  // the same rule by two names
}

Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target) {
  settings.validate();
  return {settings, make_rule(settings), make_drafter_factory(settings, parts),
          make_device_decoding(settings, parts, target, cuda_loop_kernels())};
}

}  // namespace medusa
