// What one method did with one question, once; and its line in bench.jsonl. No LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/token.h"

namespace medusa {

/// The method every other one is measured against.
inline constexpr const char* kBaseline = "none";

inline constexpr size_t kNumStepParts = 4;
inline constexpr std::array<const char*, kNumStepParts> kStepParts = {"propose", "verify", "accept",
                                                                      "commit"};

/// One answer: a turn of the conversation.
struct AnswerRecord {
  std::string text;
  std::vector<TokenId> tokens;
  std::string finish;  // as finish_name()
  int64_t steps = 0, proposed = 0, accepted = 0;
  std::vector<int64_t> emitted_per_step;  // [n] = steps that emitted n tokens
  double prefill_s = 0;
  std::array<double, kNumStepParts> parts_s{};  // of all steps, in the order of kStepParts

  double decode_s() const;
};

struct BenchSample {
  int64_t run = 1;  // methods are compared within a run only: one process, alternately
  std::string method;
  std::string rule;
  double temperature = 0;
  bool same_text = false;  // this rule promises the baseline's text
  int64_t question = 0;    // its place in the file, from 0; of a group, the group's among groups
  std::string id;          // a group's: all of them, "+" between
  std::string category;    // "mixed": a group's questions differ
  int64_t repeat = 0;
  int64_t peak_bytes = 0;  // most memory while it answered, on a GPU its own; 0: unknown
  std::vector<AnswerRecord> answers;

  int64_t emitted() const;  // tokens of all answers
  int64_t steps() const;
  double decode_s() const;
};

/// One line, without its end.
std::string sample_line(const BenchSample& sample);

/// @throws UserError  with file:line, what is not a sample's line.
std::vector<BenchSample> read_samples(const std::filesystem::path& file);

/// @throws UserError  the file cannot be written.
void write_samples(const std::filesystem::path& file, const std::vector<BenchSample>& samples);

}  // namespace medusa
