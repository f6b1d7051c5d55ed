#include "server/metrics/metrics.h"

#include "infer/candidate_tree.h"

namespace medusa {

/// What ended a text, in our words or in vLLM's.
const char* ServerMetrics::reason(FinishReason finish) const {
  const bool own = names_ == MetricsNames::Own;
  switch (finish) {
    case FinishReason::Eos:
      return own ? "eos" : "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::Context:
      return own ? "context" : "length";
    case FinishReason::Failed:
      return own ? "failed" : "error";
    case FinishReason::Stopped:
      return "stop";
    case FinishReason::Cancelled:
      return own ? "cancelled" : "abort";
  }
  return "unknown";
}

void ServerMetrics::count_start(double seconds) {
  const std::lock_guard lock(mutex_);
  queue_.add(seconds);
}

void ServerMetrics::count_step(const StepView& step, DrafterKind own_drafter) {
  const std::lock_guard lock(mutex_);
  ++steps_;
  tree_nodes_.add(step.tree.num_verify);
  proposed_ += step.tree.num_verify - 1;
  accepted_ += std::ssize(step.accepted.path);
  int64_t depth = 0;
  for (const int32_t node : step.accepted.path) {
    ++stood_[depth++];
    const DrafterKind drafter =
        step.tree.drafters.empty() ? own_drafter : step.tree.drafters[static_cast<size_t>(node)];
    ++by_source_[enum_name(drafter)];
  }
  ++by_source_["model"];
}

void ServerMetrics::count_first_tokens(int64_t tokens, double seconds, double prefill_seconds) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
  first_token_.add(seconds);
  prefill_.add(prefill_seconds);
  between_tokens_.add(0, tokens - 1);
}

void ServerMetrics::count_tokens(int64_t tokens, double seconds) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
  between_tokens_.add(seconds);  // a run comes at once: its other tokens wait for nothing
  between_tokens_.add(0, tokens - 1);
}

void ServerMetrics::count_end(const DecodeStats& stats, int64_t prompt_tokens, int64_t max_tokens,
                              double seconds, double decode_seconds) {
  const std::lock_guard lock(mutex_);
  ++ends_[reason(stats.finish)];
  whole_.add(seconds);
  prefix_queries_ += prompt_tokens;
  prefix_hits_ += stats.cached_prompt_tokens;
  if (decode_seconds >= 0) decode_.add(decode_seconds);
  prompt_size_.add(static_cast<double>(prompt_tokens));
  answer_size_.add(static_cast<double>(stats.emitted));
  max_answer_size_.add(static_cast<double>(max_tokens));
}

void ServerMetrics::count_prompt(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += tokens;
}

void ServerMetrics::count_answer(int http_status) {
  const std::lock_guard lock(mutex_);
  ++answers_[http_status];
}

void ServerMetrics::write_times(Exposition& out) const {
  out.histogram("request_queue_time_seconds", "From a request to its sequence.", queue_);
  out.histogram("request_prefill_time_seconds", "From its sequence to its first token.", prefill_);
  out.histogram("time_to_first_token_seconds", "From a request to its first token.", first_token_);
  out.histogram("inter_token_latency_seconds", "Between a token and the one before it.",
                between_tokens_);
  out.histogram("request_decode_time_seconds", "From the first token to the end.", decode_);
  out.histogram("e2e_request_latency_seconds", "From a request to its end.", whole_);
  out.histogram("request_prompt_tokens", "Tokens of a request's prompt.", prompt_size_);
  out.histogram("request_generation_tokens", "Tokens of a request's answer.", answer_size_);
  out.histogram("request_max_num_generation_tokens", "Tokens that it could have had at most.",
                max_answer_size_);
}

void ServerMetrics::write_drafts(Exposition& out) const {
  out.counter("spec_decode_num_drafts_total", "Steps of sequences.", steps_);
  out.counter("spec_decode_num_draft_tokens_total", "Candidates that were verified.", proposed_);
  out.counter("spec_decode_num_accepted_tokens_total", "Candidates that stood.", accepted_);
  out.counters("spec_decode_num_accepted_tokens_per_pos_total",
               "Steps in which the candidate at this depth stood.", "position", stood_);
  out.counters("tokens_by_source_total",
               "Tokens by who proposed them: the model's own, or a drafter's.", "source",
               by_source_);
  out.histogram("tree_nodes", "Nodes of a step's candidate tree, the root included.", tree_nodes_);
}

void ServerMetrics::write_cache(Exposition& out, const KvUse& cache) const {
  out.gauge("cache_blocks_used", "Blocks of the KV cache that running requests hold.",
            cache.blocks_used);
  out.gauge("cache_blocks_kept",
            "Blocks of ended requests, for prompts that begin alike, until others need them.",
            cache.blocks_kept);
  out.gauge("cache_blocks_total", "Blocks of the KV cache.", cache.blocks_total);
  out.gauge("kv_cache_usage_perc",
            "Share of the KV cache's blocks that running requests hold, 0 to 1.",
            cache.blocks_total == 0
                ? 0
                : static_cast<double>(cache.blocks_used) / static_cast<double>(cache.blocks_total));
  out.gauge("cache_bytes", "Memory that the KV cache has taken so far.",
            static_cast<double>(cache.bytes));
  out.counter("prefix_cache_queries_total",
              "Tokens of the prompts of ended requests, once for each answer.", prefix_queries_);
  out.counter("prefix_cache_hits_total", "Those of them that the KV cache held.", prefix_hits_);
}

std::string ServerMetrics::text(int64_t running, int64_t waiting, const KvUse& cache,
                                const SharedUse& shared) const {
  const std::lock_guard lock(mutex_);
  const bool own = names_ == MetricsNames::Own;
  Exposition out(own ? "medusa:" : "vllm:",
                 own ? Exposition::Labels() : Exposition::Labels{{"model_name", model_}});
  out.gauge("num_requests_running", "Requests that are decoded now.", static_cast<double>(running));
  out.gauge("num_requests_waiting", "Requests that wait for a free sequence.",
            static_cast<double>(waiting));
  write_cache(out, cache);
  out.gauge("shared_answers", "Finished answers that drafts for others are looked up in.",
            static_cast<double>(shared.texts));
  out.gauge("shared_bytes", "Memory of these answers and their index.",
            static_cast<double>(shared.bytes));
  out.counter("prompt_tokens_total", "Tokens of prompts.", prompt_tokens_);
  out.counter("generation_tokens_total", "Tokens of answers.", tokens_);
  out.counters("request_success_total", "Ended requests by what ended them.", "finished_reason",
               ends_);
  out.counters("http_requests_total", "Answers by their HTTP status.", "status", answers_);
  write_times(out);
  write_drafts(out);
  return out.text();
}

}  // namespace medusa
