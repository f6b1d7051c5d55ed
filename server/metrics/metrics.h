// What the server counts, for /metrics.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backbone/kv_cache.h"
#include "base/fields.h"
#include "infer/decode_request.h"
#include "infer/drafters/shared_texts.h"
#include "server/metrics/exposition.h"

namespace medusa {

/// Whose names the metrics have.
enum class MetricsNames { Own, Vllm };

template <>
struct EnumNames<MetricsNames> {
  static constexpr auto values = std::to_array<std::pair<const char*, MetricsNames>>({
      {"own", MetricsNames::Own},
      {"vllm", MetricsNames::Vllm},
  });
};

/// Thread safety: any thread may call anything.
class ServerMetrics {
 public:
  /// @param model  its name, a label of vLLM's metrics.
  explicit ServerMetrics(MetricsNames names = MetricsNames::Own, std::string model = {})
      : names_(names), model_(std::move(model)) {}

  /// A request got a sequence, this many seconds after it came.
  void count_start(double seconds);
  /// A step of one sequence.
  /// @param own_drafter  who proposed the nodes of a tree that does not say.
  void count_step(const StepView& step, DrafterKind own_drafter);
  /// The first tokens of a text.
  /// @param seconds  since its request came. @param prefill_seconds  since it got a sequence.
  void count_first_tokens(int64_t tokens, double seconds, double prefill_seconds);
  /// More tokens of a text, this many seconds after those before.
  void count_tokens(int64_t tokens, double seconds);
  /// @param max_tokens      that it could have had.
  /// @param seconds         since its request came.
  /// @param decode_seconds  since its first token; below 0: it had none.
  void count_end(const DecodeStats& stats, int64_t prompt_tokens, int64_t max_tokens,
                 double seconds, double decode_seconds);
  void count_prompt(int64_t tokens);
  void count_answer(int http_status);

  /// @param running, waiting  requests now.
  /// @param cache, shared     the KV cache and the answers that are kept for others, now.
  std::string text(int64_t running, int64_t waiting, const KvUse& cache,
                   const SharedUse& shared) const;

 private:
  void write_cache(Exposition& out, const KvUse& cache) const;
  void write_times(Exposition& out) const;
  void write_drafts(Exposition& out) const;
  const char* reason(FinishReason finish) const;

  const MetricsNames names_;
  const std::string model_;
  mutable std::mutex mutex_;
  int64_t prompt_tokens_ = 0, tokens_ = 0, steps_ = 0, proposed_ = 0, accepted_ = 0;
  int64_t prefix_queries_ = 0, prefix_hits_ = 0;  // tokens of prompts, for each answer
  std::map<std::string, int64_t> ends_;           // by finish reason
  std::map<int, int64_t> answers_;                // by HTTP status
  std::map<int64_t, int64_t> stood_;          // [depth] steps in which the candidate there stood
  std::map<std::string, int64_t> by_source_;  // tokens by who proposed them
  MetricHistogram queue_{{.001, .01, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}};
  MetricHistogram first_token_{{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}};
  MetricHistogram between_tokens_{{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}};
  MetricHistogram whole_{{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}};
  MetricHistogram prefill_{{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}};
  MetricHistogram decode_{{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}};
  MetricHistogram prompt_size_{{1, 10, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000}};
  MetricHistogram answer_size_{{1, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}};
  MetricHistogram max_answer_size_{{1, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}};
  MetricHistogram tree_nodes_{{1, 2, 4, 8, 12, 16, 24, 32, 48, 64}};
};

}  // namespace medusa
