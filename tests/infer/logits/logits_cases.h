// Changes of logits that the tests of every drafter run over, on a small vocabulary.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "infer/logits/logits_config.h"

namespace medusa::fixtures {

struct LogitsCase {
  std::string name;
  LogitsConfig config;
};

/// Each change alone, and all of them together; tokens are below 7.
inline std::vector<LogitsCase> logits_cases() {
  std::vector<LogitsCase> out;
  const auto add = [&out](std::string name, const auto& change) {
    out.push_back({std::move(name), {}});
    change(out.back().config);
  };
  const auto presence = [](LogitsConfig& c) { c.penalties.presence = 0.9; };
  const auto frequency = [](LogitsConfig& c) { c.penalties.frequency = 0.3; };
  const auto repetition = [](LogitsConfig& c) { c.penalties.repetition = 1.7; };
  const auto bias = [](LogitsConfig& c) { c.bias = {{2, 1.5F}, {5, -100.0F}}; };
  const auto min_tokens = [](LogitsConfig& c) { c.min_tokens = 25; };
  add("presence", presence);
  add("frequency", frequency);
  add("negative frequency", [](LogitsConfig& c) { c.penalties.frequency = -0.1; });
  add("repetition", repetition);
  add("bias", bias);
  add("allowed", [](LogitsConfig& c) { c.allowed = {1, 3, 4, 6}; });
  add("banned", [](LogitsConfig& c) { c.banned = {0, 3}; });
  add("min_tokens", min_tokens);
  add("all", [&](LogitsConfig& c) {
    presence(c);
    frequency(c);
    repetition(c);
    bias(c);
    min_tokens(c);
    c.banned = {0};
  });
  return out;
}

}  // namespace medusa::fixtures
