// What the server counts, in the text format of Prometheus (exposition format 0.0.4).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backbone/kv_cache.h"
#include "infer/decode_request.h"

namespace medusa {

/// Counts of values up to some bounds, as a Prometheus histogram.
class LatencyHistogram {
 public:
  explicit LatencyHistogram(std::vector<double> bounds)  // ascending
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  /// The same value, several times.
  void add(double value, int64_t times = 1);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  std::vector<double> bounds_;
  std::vector<int64_t>
      counts_;  // of values up to bounds_[i] and above the one before; the last: all larger
  double sum_ = 0;
};

/// Thread safety: any thread may call anything.
class ServerMetrics {
 public:
  /// The first tokens of a text, this many seconds after its request came.
  void count_first_tokens(int64_t tokens, double seconds);
  /// More tokens of a text, this many seconds after those before.
  void count_tokens(int64_t tokens, double seconds);
  /// @param prompt_tokens  of the request that ended.
  /// @param seconds        since it came.
  void count_end(const DecodeStats& stats, int64_t prompt_tokens, bool stopped_by_text,
                 double seconds);
  void count_prompt(int64_t tokens);
  void count_answer(int http_status);

  /// @param running, waiting  requests now.
  /// @param cache             the KV cache now.
  std::string text(int64_t running, int64_t waiting, const KvUse& cache) const;

 private:
  mutable std::mutex mutex_;
  int64_t prompt_tokens_ = 0, tokens_ = 0, steps_ = 0, proposed_ = 0, accepted_ = 0;
  int64_t prefix_queries_ = 0, prefix_hits_ = 0;  // tokens of prompts, for each answer
  std::map<std::string, int64_t> ends_;           // by finish reason
  std::map<int, int64_t> answers_;                // by HTTP status
  std::vector<int64_t> steps_by_tokens_;          // [n]: steps that emitted n tokens
  LatencyHistogram first_token_{{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}};
  LatencyHistogram between_tokens_{{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}};
  LatencyHistogram whole_{{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}};
};

}  // namespace medusa
