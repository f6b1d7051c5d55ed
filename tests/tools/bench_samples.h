// Made-up samples of a bench.
#pragma once

#include <string>

#include "runtime/bench/sample.h"

namespace medusa::fixtures {

struct SampleSpec {
  std::string method = kBaseline;
  int64_t question = 0;
  std::string category = {};
  int64_t repeat = 0;
  int64_t run = 1;
  int64_t tokens = 10;
  int64_t steps = 10;
  double seconds =
      1;  // of decoding: a tenth each to propose, accept and commit, the rest to verify
  double temperature = 0;
  TokenId first_token = 0;  // the others count up from it
};

inline BenchSample make_sample(const SampleSpec& spec) {
  AnswerRecord answer;
  answer.text = "text of " + spec.method;
  for (int64_t i = 0; i < spec.tokens; ++i)
    answer.tokens.push_back(spec.first_token + static_cast<TokenId>(i));
  answer.finish = "length";
  answer.steps = spec.steps;
  answer.proposed = 2 * spec.steps;
  answer.accepted = spec.tokens - spec.steps;
  // As many steps of two tokens as it takes, the others of one.
  answer.emitted_per_step = {0, 2 * spec.steps - spec.tokens, spec.tokens - spec.steps};
  answer.prefill_s = 0.25;
  answer.parts_s = {0.1 * spec.seconds, 0.7 * spec.seconds, 0.1 * spec.seconds, 0.1 * spec.seconds};
  BenchSample sample;
  sample.run = spec.run;
  sample.method = spec.method;
  sample.rule = spec.temperature > 0 ? "match" : "greedy";
  sample.temperature = spec.temperature;
  sample.same_text = true;
  sample.question = spec.question;
  sample.id = "q/" + std::to_string(spec.question);
  sample.category = spec.category;
  sample.repeat = spec.repeat;
  sample.peak_bytes = 1000 + spec.question;
  sample.answers = {answer};
  return sample;
}

}  // namespace medusa::fixtures
