#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace medusa {
namespace {

std::string header(const std::string& name, const char* kind, const std::string& help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, kind, help);
}

std::string counter(const std::string& name, const std::string& help, int64_t value) {
  return header(name, "counter", help) + fmt::format("{} {}\n", name, value);
}

std::string gauge(const std::string& name, const std::string& help, int64_t value) {
  return header(name, "gauge", help) + fmt::format("{} {}\n", name, value);
}

const char* word_of(FinishReason reason, bool stopped_by_text) {
  switch (reason) {
    case FinishReason::Eos:
      return "eos";
    case FinishReason::Length:
      return "length";
    case FinishReason::Context:
      return "context";
    case FinishReason::Failed:
      return "failed";
    case FinishReason::Stopped:
      return stopped_by_text ? "stop" : "cancelled";
    case FinishReason::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace

void LatencyHistogram::add(double value, int64_t times) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<size_t>(at)] += times;
  sum_ += value * static_cast<double>(times);
}

std::string LatencyHistogram::text(const std::string& name, const std::string& help) const {
  std::string out = header(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, below);
  }
  return out + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, sum_, below);
}

void ServerMetrics::count_first_tokens(int64_t tokens, double seconds) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
  first_token_.add(seconds);
  between_tokens_.add(0, tokens - 1);
}

void ServerMetrics::count_tokens(int64_t tokens, double seconds) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
  between_tokens_.add(seconds);  // a run comes at once: its other tokens wait for nothing
  between_tokens_.add(0, tokens - 1);
}

void ServerMetrics::count_end(const DecodeStats& stats, int64_t prompt_tokens, bool stopped_by_text,
                              double seconds) {
  const std::lock_guard lock(mutex_);
  ++ends_[word_of(stats.finish, stopped_by_text)];
  whole_.add(seconds);
  prefix_queries_ += prompt_tokens;
  prefix_hits_ += stats.cached_prompt_tokens;
  steps_ += stats.steps;
  proposed_ += stats.proposed;
  accepted_ += stats.accepted;
  steps_by_tokens_.resize(std::max(steps_by_tokens_.size(), stats.emitted_per_step.size()), 0);
  for (size_t n = 0; n < stats.emitted_per_step.size(); ++n)
    steps_by_tokens_[n] += stats.emitted_per_step[n];
}

void ServerMetrics::count_prompt(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += tokens;
}

void ServerMetrics::count_answer(int http_status) {
  const std::lock_guard lock(mutex_);
  ++answers_[http_status];
}

std::string ServerMetrics::text(int64_t running, int64_t waiting, const KvUse& cache) const {
  const std::lock_guard lock(mutex_);
  std::string out = gauge("medusa:num_requests_running", "Requests that are decoded now.", running);
  out += gauge("medusa:num_requests_waiting", "Requests that wait for a free sequence.", waiting);
  out += gauge("medusa:cache_blocks_used", "Blocks of the KV cache that running requests hold.",
               cache.blocks_used);
  out += gauge("medusa:cache_blocks_kept",
               "Blocks of ended requests, for prompts that begin alike, until others need them.",
               cache.blocks_kept);
  out += gauge("medusa:cache_blocks_total", "Blocks of the KV cache.", cache.blocks_total);
  out += gauge("medusa:cache_bytes", "Memory that the KV cache has taken so far.", cache.bytes);
  out += counter("medusa:prompt_tokens_total", "Tokens of prompts.", prompt_tokens_);
  out += counter("medusa:prefix_cache_queries_total",
                 "Tokens of the prompts of ended requests, once for each answer.", prefix_queries_);
  out += counter("medusa:prefix_cache_hits_total", "Those of them that the KV cache held.",
                 prefix_hits_);
  out += counter("medusa:generation_tokens_total", "Tokens of answers.", tokens_);
  out += header("medusa:request_success_total", "counter", "Ended requests by what ended them.");
  for (const auto& [reason, count] : ends_)
    out +=
        fmt::format("medusa:request_success_total{{finished_reason=\"{}\"}} {}\n", reason, count);
  out += header("medusa:http_requests_total", "counter", "Answers by their HTTP status.");
  for (const auto& [status, count] : answers_)
    out += fmt::format("medusa:http_requests_total{{status=\"{}\"}} {}\n", status, count);
  out += counter("medusa:spec_decode_num_drafts_total", "Steps of ended requests.", steps_);
  out += counter("medusa:spec_decode_num_draft_tokens_total", "Candidates that were verified.",
                 proposed_);
  out +=
      counter("medusa:spec_decode_num_accepted_tokens_total", "Candidates that stood.", accepted_);
  out += header("medusa:spec_decode_num_accepted_tokens_per_pos_total", "counter",
                "Steps in which the candidate at this depth stood.");
  int64_t deeper = 0;
  std::string by_depth;
  for (size_t n = steps_by_tokens_.size(); n-- > 2;) {
    deeper += steps_by_tokens_[n];
    by_depth =
        fmt::format("medusa:spec_decode_num_accepted_tokens_per_pos_total{{position=\"{}\"}} {}\n",
                    n - 2, deeper) +
        by_depth;
  }
  out += by_depth;
  out +=
      first_token_.text("medusa:time_to_first_token_seconds", "From a request to its first token.");
  out += between_tokens_.text("medusa:inter_token_latency_seconds",
                              "Between a token and the one before it.");
  out += whole_.text("medusa:e2e_request_latency_seconds", "From a request to its end.");
  return out;
}

}  // namespace medusa
