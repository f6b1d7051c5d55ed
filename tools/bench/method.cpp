#include "tools/bench/method.h"

namespace medusa {

bool Method::same_text() const {
  InferConfig plain = settings;
  plain.drafter = DrafterKind::None;
  plain.rule = RuleKind::Auto;
  return rule->lossless() &&
         (temperature() == 0 || resolved_rule(settings) == resolved_rule(plain));
}

Method make_method(const InferConfig& settings, const DraftParts& parts) {
  settings.validate();
  return {settings, make_rule(settings), make_drafter_factory(settings, parts)};
}

}  // namespace medusa
