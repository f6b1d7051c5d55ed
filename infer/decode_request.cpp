#include "infer/decode_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace medusa {

void DecodeStats::count_step(size_t num_emitted, int64_t num_proposed, int64_t num_accepted,
                             int64_t depth) {
  ++steps;
  proposed += num_proposed;
  last_proposed = num_proposed;
  accepted += num_accepted;
  if (emitted_per_step.size() <= num_emitted) emitted_per_step.resize(num_emitted + 1);
  ++emitted_per_step[num_emitted];
  const auto paths = static_cast<size_t>(depth) + 1;
  if (accepted_per_step.size() < paths) accepted_per_step.resize(paths);
  ++accepted_per_step.at(static_cast<size_t>(num_accepted));
}

std::optional<FinishReason> finish_reason(const DecodeLimits& limits, TokenId token,
                                          int64_t emitted, int64_t num_tokens, bool wanted,
                                          int64_t max_rows) {
  if (std::find(limits.eos.begin(), limits.eos.end(), token) != limits.eos.end())
    return FinishReason::Eos;
  if (!wanted) return FinishReason::Stopped;
  if (emitted >= limits.max_new_tokens) return FinishReason::Length;
  if (num_tokens > max_rows) return FinishReason::Context;  // the next root would have no row
  return std::nullopt;
}

int64_t rows_needed(int64_t prompt_tokens, const DecodeLimits& limits, int64_t max_rows) {
  return std::min(max_rows, prompt_tokens + limits.max_new_tokens + limits.max_nodes);
}

void check_room(int64_t prompt_tokens, const DecodeLimits& limits, int64_t max_rows,
                int64_t total_rows) {
  const int64_t rows = rows_needed(prompt_tokens, limits, max_rows);
  if (rows <= total_rows) return;
  throw UserError(fmt::format(
      "the request may need {} rows of the KV cache (a prompt of {} tokens, at most {} new ones, "
      "trees of at most {} nodes; a sequence has at most {}), found {} in all, expected at least "
      "as many; ask for fewer tokens, or raise backbone.cache_mb",
      rows, prompt_tokens, limits.max_new_tokens, limits.max_nodes, max_rows, total_rows));
}

void check_request(const DecodeRequest& request, int64_t max_rows, int64_t total_rows) {
  if (request.prompt.empty())
    throw UserError("the prompt has no tokens, expected at least one; give a text to continue");
  if (static_cast<int64_t>(request.prompt.size()) > max_rows)
    throw UserError(
        fmt::format("the prompt has {} tokens, expected at most {}; shorten the prompt or raise "
                    "backbone.context",
                    request.prompt.size(), max_rows));
  const auto expect_some = [](int64_t value, const char* what) {
    if (value < 1)
      throw UserError(
          fmt::format("the request has {} = {}, expected at least 1; raise it", what, value));
  };
  expect_some(request.limits.max_new_tokens, "limits.max_new_tokens");
  expect_some(request.limits.max_nodes, "limits.max_nodes");
  check_room(std::ssize(request.prompt), request.limits, max_rows, total_rows);
}

}  // namespace medusa
