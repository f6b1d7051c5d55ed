// What compare.json says: plain and speculative decoding measured side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// "plain", "medusa, greedy", "plain at 0.7", "medusa, typical at 0.7".
std::string method_name(const std::string& drafter, const std::string& rule, double temperature);

struct ReportedMethod {
  std::string drafter;
  std::string rule;
  double temperature = 0;
  double tokens_per_s = 0;
  double tokens_per_step = 0;
  double step_overhead = 0;  // seconds per step / seconds per plain step
  double speedup = 0;        // over plain decoding at the same temperature
  std::optional<std::pair<double, double>> speedup_95;  // paired bootstrap over the prompts
  std::optional<int64_t> same_text;  // prompts answered exactly as plain; none: not promised
  int64_t num_prompts = 0;
  std::vector<int64_t> emitted_per_step;                 // [n] = steps that emitted n tokens
  std::vector<std::pair<std::string, double>> phase_ms;  // of one step: propose, verify, …

  bool plain() const { return drafter == "none"; }
  std::string name() const { return method_name(drafter, rule, temperature); }
  int64_t num_steps() const;
};

/// One question's answer, step by step.
struct ReportedAnswer {
  struct Step {
    int64_t num_tokens = 0;
    std::string text;
  };
  std::string method;
  double seconds = 0;
  std::vector<Step> steps;
};

struct ReportedComparison {
  std::vector<ReportedMethod> methods;
  bool complete = true;  // false: interrupted, only the prompts so far
  std::string dtype;
  std::string machine;   // description
  std::string settings;  // YAML text of the run
  std::string backbone;  // fingerprint
  std::string heads;     // fingerprint; empty: not said
  std::string date;      // when it was measured, and by which medusa; empty: not said
  std::string version;
  std::string question;                 // that all answers below are to
  std::vector<ReportedAnswer> answers;  // of the greedy methods
};

/// @throws UserError  not readable, not JSON, or without the keys that `medusa generate --compare`
///                    writes.
ReportedComparison read_comparison(const std::filesystem::path& file);

}  // namespace medusa
