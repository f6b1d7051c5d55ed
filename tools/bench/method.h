// A way to decode: drafter, rule and temperature, ready to run.
#pragma once

#include <memory>
#include <string>

#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/infer_config.h"

namespace medusa {

struct Method {
  InferConfig settings;
  bool lossless = true;  // its rule promises the target's own text, or its distribution
  std::unique_ptr<Decoder> decoder;

  std::string drafter() const { return enum_name(settings.drafter); }
  std::string rule_name() const { return enum_name(resolved_rule(settings)); }
  double temperature() const { return settings.sampling.temperature; }

  /// True: the rule promises the text of plain decoding at this temperature, token for token.
  bool same_text() const;
};

/// @param parts   what the drafter needs; must outlive the method.
/// @param target  that will decode; must outlive the method.
/// @throws UserError  drafter, rule and temperature do not go together.
Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target);

}  // namespace medusa
