#include "infer/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "backbone/cpu/thread_team.h"
#include "base/check.h"
#include "base/error.h"
#include "infer/text_end.h"

namespace medusa {
namespace {

/// Adds the time since the last call to one of the counters.
class Stopwatch {
 public:
  void lap(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// A sequence that is being decoded.
struct Sequence {
  size_t index = 0;  // of the request
  int32_t slot = -1;
  DecodeRequest request;
  std::unique_ptr<Drafter> drafter;
  std::vector<TokenId> tokens;  // prompt and emitted; the last one is the root
  at::Tensor hidden;            // [H] at the token before the root
  CandidateTree tree;
  Acceptance accepted;
  DecodeStats stats;
  bool more = true;
};

/// Closes what is still open, also when something throws.
struct OpenSequences {
  TargetModel& target;
  std::vector<Sequence> list;

  ~OpenSequences() {
    for (const Sequence& s : list) target.close(s.slot);
  }
};

/// Takes a slot and runs the prompt up to its last token, the first root.
void start(size_t index, DecodeRequest request, const DrafterFactory& make_drafter,
           OpenSequences& open) {
  check_request(request, open.target.max_rows());
  const int32_t slot = open.target.open();
  Sequence& s = open.list.emplace_back();
  s.slot = slot;
  s.index = index;
  s.request = std::move(request);
  s.tokens = s.request.prompt;
  const auto prompt = std::span<const TokenId>(s.request.prompt);
  if (prompt.size() > 1) s.hidden = open.target.prefill(s.slot, prompt.first(prompt.size() - 1));
  s.drafter = make_drafter();
  s.drafter->begin(prompt);
}

CandidateTree propose(Sequence& s, const TargetModel& target, size_t num_sequences) {
  const DecodeLimits& limits = s.request.limits;
  const auto committed = static_cast<int64_t>(s.tokens.size()) - 1;
  const int64_t room = target.max_rows() - committed;  // cache rows for this pass, at least 1
  const auto nodes = static_cast<int32_t>(std::min<int64_t>(limits.max_nodes, room));
  const auto left = static_cast<int32_t>(limits.max_new_tokens - s.stats.emitted);
  CandidateTree tree = s.drafter->propose({s.tokens, s.hidden, std::min(left, nodes) - 1, nodes,
                                           s.slot, static_cast<int32_t>(num_sequences)},
                                          s.request.random);
  MEDUSA_ASSERT(tree.size() >= 1 && tree.size() <= nodes, tree.size(), nodes);
  MEDUSA_ASSERT(tree.num_verify >= 1 && tree.num_verify <= tree.size(), tree.num_verify);
  MEDUSA_ASSERT(tree.tokens[0] == s.tokens.back(), tree.tokens[0], s.tokens.back());
  return tree;
}

void accept(const AcceptanceRule& rule, const TargetOutput& output, Sequence& s) {
  const auto root = static_cast<int64_t>(s.tokens.size()) - 1;
  s.accepted = rule.accept(s.tree, output.logits, root, s.request.random);
}

/// Rules are pure, so sequences are judged at the same time; a lone one on the calling thread.
void accept_all(const AcceptanceRule& rule, const std::vector<TargetOutput>& outputs,
                std::vector<Sequence>& list) {
  if (list.size() == 1) return accept(rule, outputs[0], list[0]);
  const auto team = shared_team();
  const auto stride = static_cast<size_t>(team->num_threads());
  team->run([&](int thread) {
    for (auto i = static_cast<size_t>(thread); i < list.size(); i += stride)
      accept(rule, outputs[i], list[i]);
  });
}

/// Emits the accepted run and the target's own token, as far as the text goes on.
/// @returns  nodes whose rows stay: the root and every emitted token but the last.
std::vector<int32_t> emit_run(Sequence& s, const TargetOutput& output, int64_t max_rows) {
  std::vector<int32_t> keep{0};
  const std::vector<int32_t>& path = s.accepted.path;
  for (size_t i = 0;; ++i) {
    const bool is_next = i == path.size();
    const TokenId token = is_next ? s.accepted.next : s.tree.tokens[static_cast<size_t>(path[i])];
    s.tokens.push_back(token);
    ++s.stats.emitted;
    const bool wanted = s.request.emit({token, &output, keep.back()});
    const std::optional<FinishReason> finish =
        finish_reason(s.request.limits, token, s.stats.emitted,
                      static_cast<int64_t>(s.tokens.size()), wanted, max_rows);
    if (finish) {
      s.stats.finish = *finish;
      s.more = false;
    }
    if (finish || is_next) break;
    keep.push_back(path[i]);
  }
  const size_t run = keep.size();  // as many tokens as rows that stay
  if (s.stats.emitted_per_step.size() <= run) s.stats.emitted_per_step.resize(run + 1);
  ++s.stats.emitted_per_step[run];
  return keep;
}

}  // namespace

void check_request(const DecodeRequest& request, int64_t max_rows) {
  if (request.prompt.empty())
    throw UserError("the prompt has no tokens, expected at least one; give a text to continue");
  if (static_cast<int64_t>(request.prompt.size()) > max_rows)
    throw UserError(
        fmt::format("the prompt has {} tokens, the cache holds {}; shorten the prompt or raise "
                    "backbone.context",
                    request.prompt.size(), max_rows));
  MEDUSA_ASSERT(request.limits.max_new_tokens >= 1, request.limits.max_new_tokens);
  MEDUSA_ASSERT(request.limits.max_nodes >= 1, request.limits.max_nodes);
}

DecodeTimes decode(TargetModel& target, const AcceptanceRule& rule,
                   const DrafterFactory& make_drafter,
                   const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished) {
  MEDUSA_ASSERT(target.num_free_slots() > 0);
  DecodeTimes times;
  OpenSequences open{target, {}};
  size_t taken = 0;
  for (bool exhausted = false;;) {
    Stopwatch watch;
    while (!exhausted && target.num_free_slots() > 0) {
      auto request = next();
      exhausted = !request;
      if (request) start(taken++, std::move(*request), make_drafter, open);
    }
    watch.lap(times.prefill_s);
    if (open.list.empty()) return times;

    std::vector<SlotTree> trees;
    for (Sequence& s : open.list) {
      s.tree = propose(s, target, open.list.size());  // propose
      trees.push_back({s.slot, &s.tree});
    }
    watch.lap(times.propose_s);
    const std::vector<TargetOutput> outputs = target.forward(trees);  // verify
    watch.lap(times.verify_s);

    accept_all(rule, outputs, open.list);  // accept

    for (size_t i = 0; i < open.list.size(); ++i) {
      Sequence& s = open.list[i];
      const std::vector<int32_t> keep = emit_run(s, outputs[i], target.max_rows());
      watch.lap(times.accept_s);

      target.commit(s.slot, keep);  // commit
      s.drafter->observe(s.tree, outputs[i], s.accepted);
      s.hidden = outputs[i].hidden[keep.back()].clone();
      ++s.stats.steps;
      s.stats.proposed += s.tree.num_verify - 1;
      s.stats.accepted += static_cast<int64_t>(s.accepted.path.size());
      watch.lap(times.commit_s);
    }

    for (auto s = open.list.begin(); s != open.list.end();) {
      if (s->more) {
        ++s;
        continue;
      }
      const Sequence done = std::move(*s);
      s = open.list.erase(s);
      target.close(done.slot);
      if (!finished(done.index, done.stats)) return times;
    }
  }
}

DecodeResult decode_one(TargetModel& target, const AcceptanceRule& rule,
                        const DrafterFactory& make_drafter, DecodeRequest request) {
  DecodeResult result;
  std::optional<DecodeRequest> only(std::move(request));
  result.times = decode(
      target, rule, make_drafter, [&] { return std::exchange(only, std::nullopt); },
      [&](size_t, const DecodeStats& stats) {
        result.stats = stats;
        return true;
      });
  return result;
}

}  // namespace medusa
