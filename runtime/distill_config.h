// Settings of distillation: how the model writes its own training text.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.h"
#include "data/dataset/state_rows.h"
#include "infer/infer_config.h"

namespace medusa {

struct DistillConfig {
  int64_t self_prompts = 2000;
  SamplingConfig question_sampling{.temperature = 1.0, .top_k = 0, .top_p = 0.95};
  int64_t question_tokens = 64;
  SamplingConfig sampling{.temperature = 0.7, .top_k = 0, .top_p = 0.95};
  int32_t max_new_tokens = 256;
  int64_t max_answer_tokens = 0;
  int64_t text_tokens = 512;
  int64_t batch = 32;
  int64_t shard_samples = 256;
  bool record_hidden = true;
  StateFormat states_dtype = StateFormat::Bfloat16;
  std::optional<double> states_budget_mb{};

  template <typename Fields>
  void fields(Fields& f) {
    f("self_prompts", self_prompts, "questions the model writes itself when no file is given",
      at_least<int64_t>(1));
    f.section("question_sampling", question_sampling, "how those questions are sampled");
    f("question_tokens", question_tokens, "most tokens of such a question", at_least<int64_t>(4));
    sampling.fields(f);
    f("max_new_tokens", max_new_tokens, "most tokens of one answer", at_least(1));
    f("max_answer_tokens", max_answer_tokens,
      "about how many answer tokens the dataset should hold; 0: answer all prompts",
      at_least<int64_t>(0));
    f("text_tokens", text_tokens, "most tokens of a piece of a text that distill --prefill reads",
      at_least<int64_t>(2));
    f("batch", batch, "sequences generated at the same time", between<int64_t>(1, 1024));
    f("shard_samples", shard_samples, "samples of one HDF5 shard", at_least<int64_t>(1));
    f("record_hidden", record_hidden,
      "keep the backbone's states, so that training needs no backbone pass");
    f("states_dtype", states_dtype, "how they are kept; int8 takes half the room");
    f("states_budget_mb", states_budget_mb,
      "most megabytes (10^6 bytes) of states; training computes the others again; null: no limit",
      between(1e-6, 1e9));
  }
  void validate() const {}
};

}  // namespace medusa
