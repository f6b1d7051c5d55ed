// One training sample: a prompt and the answer that the model itself wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token.h"
#include "data/dataset/state_rows.h"

namespace medusa {

struct Sample {
  std::string prompt_id;
  std::vector<TokenId> tokens;  // prompt and answer, special tokens included
  int64_t answer_start =
      0;  // index of the first generated token; 1 <= answer_start < tokens.size()

  /// bfloat16 bits, [tokens.size() - answer_start, H]: row i is the backbone's state (after the
  /// final norm) at token answer_start - 1 + i, as decoding computed it. Empty: not recorded.
  std::vector<uint16_t> hidden;

  int64_t answer_length() const { return static_cast<int64_t>(tokens.size()) - answer_start; }
};

/// What a dataset says of itself; readers compare it with what they are given.
struct DatasetInfo {
  std::string backbone;   // fingerprint
  std::string tokenizer;  // fingerprint
  std::string prompts;    // fingerprint of all prompts, in order: see fingerprint_prompts()
  std::string sampling;   // resolved distill settings, YAML text
  uint64_t seed = 0;
  int64_t vocab_size = 0;                      // V
  int64_t hidden_size = 0;                     // H; 0: hidden states are not recorded
  StateFormat states = StateFormat::Bfloat16;  // how they are
  int64_t states_budget = 0;  // bytes of states after which no more are recorded; 0: all are
};

}  // namespace medusa
