// A way to decode: drafter, rule and temperature, ready to run.
#pragma once

#include <memory>
#include <string>

#include "infer/acceptance_rule.h"
#include "infer/factory.h"
#include "infer/infer_config.h"
#include "tools/answer.h"
#include "tools/device_decoding.h"

namespace medusa {

struct Method {
  InferConfig settings;
  std::unique_ptr<AcceptanceRule> rule;
  DrafterFactory make_drafter;
  std::unique_ptr<DeviceDecoding> on_device;  // null: the host's loop runs

  std::string drafter() const { return enum_name(settings.drafter); }
  std::string rule_name() const { return enum_name(resolved_rule(settings)); }
  double temperature() const { return settings.sampling.temperature; }

  /// True: the rule promises the text of plain decoding at this temperature, token for token.
  bool same_text() const;

  /// The engine keeps references to this method.
  /// @param target  that the method was made for.
  Engine engine(TargetModel& target) const {
    return {target, *rule, make_drafter, on_device ? on_device->decoder.get() : nullptr};
  }
};

/// @param parts   what the drafter needs; must outlive the method.
/// @param target  that will decode, all of whose slots are free; must outlive the method.
/// @throws UserError  drafter, rule and temperature do not go together.
Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target);

}  // namespace medusa
