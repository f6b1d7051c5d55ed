#include "infer/host_decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backbone/cpu/threads/thread_pool.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

/// Adds the time since the last call to one of the counters.
class Stopwatch {
 public:
  double lap() {
    const auto from = std::exchange(last_, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(last_ - from).count();
  }
  void lap(double& seconds) { seconds += lap(); }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

/// A sequence from submit() to its end.
struct HostDecoder::Sequence : DecodedSequence {
  std::unique_ptr<Drafter> drafter;  // null while it waits
  std::vector<TokenId> tokens;       // prompt and emitted; the last one is the root
  int64_t prompt_rows = 0;           // of the prompt, committed so far
  int64_t prompt_passes = 0;         // since it has a slot, until all of its prompt has run
  at::Tensor hidden;                 // [H] at the token before the root
  CandidateTree tree;
  ProcessedRows rows;  // of the tree
  Acceptance accepted;

  /// The root is never in the cache before its pass, so the prompt runs up to its last token.
  std::span<const TokenId> missing_prompt() const {
    return std::span(request.prompt)
        .first(request.prompt.size() - 1)
        .subspan(static_cast<size_t>(prompt_rows));
  }

  /// The shorter prompt first, the longer it waits the sooner.
  static bool enters_before(const Sequence* one, const Sequence* other) {
    constexpr int64_t kRowsPerPass = 4;  // that a pass of waiting weighs
    const auto turn = [](const Sequence& s) {
      return std::ssize(s.missing_prompt()) - kRowsPerPass * s.prompt_passes;
    };
    return turn(*one) < turn(*other);
  }

  void take_prompt(int64_t num_rows, at::Tensor state) {
    prompt_rows += num_rows;
    hidden = std::move(state);
  }

  /// Runs f for this sequence; whatever it throws ends this sequence alone.
  template <typename Function>
  void guarded(const Function& f) {
    try {
      f();
    } catch (...) {
      fail(std::current_exception());
    }
  }
};

/// What runs together: trees of some sequences and chunks of others' prompts.
struct HostDecoder::Pass {
  std::vector<Sequence*> with_tree, with_chunk;
  std::vector<SlotTree> trees;
  std::vector<PromptChunk> chunks;
  PassOutput output;

  /// Adds the next rows of a prompt, at most so many. @returns  how many.
  int64_t add_chunk(Sequence& s, int64_t most) {
    const auto missing = s.missing_prompt();
    const auto chunk = missing.first(std::min(missing.size(), static_cast<size_t>(most)));
    with_chunk.push_back(&s);
    chunks.push_back({s.slot, chunk, s.request.on_prompt != nullptr, s.drafter->feature_layers()});
    return std::ssize(chunk);
  }

  bool empty() const { return trees.empty() && chunks.empty(); }
  int32_t num_tree_rows() const {
    int32_t rows = 0;
    for (const SlotTree& each : trees) rows += each.tree->size();
    return rows;
  }
  int32_t num_prompt_rows() const {
    int64_t rows = 0;
    for (const PromptChunk& each : chunks) rows += std::ssize(each.tokens);
    return static_cast<int32_t>(rows);
  }
  /// Of all rows, those of prompts.
  double prompt_share() const {
    return static_cast<double>(num_prompt_rows()) / (num_tree_rows() + num_prompt_rows());
  }
};

HostDecoder::HostDecoder(TargetModel& target, std::shared_ptr<const AcceptanceRule> rule,
                         DrafterFactory make_drafter, HostDecoderOptions options)
    : target_(target),
      rule_(std::move(rule)),
      make_drafter_(std::move(make_drafter)),
      pruning_(std::move(options.cost)),
      prompt_share_(options.prompt_share) {}

HostDecoder::~HostDecoder() { cancel_all(); }

int64_t HostDecoder::num_free() const {
  return std::max<int64_t>(0, target_.num_free_slots() - num_waiting());
}

RequestId HostDecoder::submit(DecodeRequest request) {
  sequences_.expect_no_step("submit");
  check_request(request, target_.max_rows(), target_.total_rows());
  return sequences_.add(std::move(request));
}

std::optional<DecodeStats> HostDecoder::cancel(RequestId id) {
  sequences_.expect_no_step("cancel");
  const auto s = sequences_.running_one(id);
  if (s == nullptr) return sequences_.cancel_waiting(id);
  target_.close(s->slot);
  std::erase(sequences_.running, s);
  s->stats.finish = FinishReason::Cancelled;
  return std::move(s->stats);
}

const DecodeStats* HostDecoder::stats(RequestId id) const { return sequences_.stats(id); }

void HostDecoder::cancel_all() {
  sequences_.waiting.clear();
  for (const auto& s : std::exchange(sequences_.running, {})) target_.close(s->slot);
}

void HostDecoder::admit() {
  while (!sequences_.waiting.empty()) {
    const DecodeRequest& first = sequences_.waiting.front()->request;
    const int64_t rows = rows_needed(std::ssize(first.prompt), first.limits, target_.max_rows());
    if (!target_.has_room(rows)) return;  // nor has anybody behind it: they wait in order
    const int32_t slot = target_.open(rows);
    Sequence& next = sequences_.start_next();
    next.slot = slot;
    next.tokens = next.request.prompt;
    next.guarded([&] {
      const DrafterFactory& make =
          next.request.make_drafter ? next.request.make_drafter : make_drafter_;
      next.drafter = make();
      if (next.drafter == nullptr)
        throw UserError(
            "own_drafter: it returned null, expected a new drafter for each text; return one");
      next.drafter->begin(next.request.prompt);
      next.rows = ProcessedRows(next.request.processors, next.request.prompt);
    });
  }
}

/// Where a row's bits depend on its neighbors, a sequence is decoded as if it were alone as far as
/// that goes: nothing stands beside its prompt, which always enters in chunks of the same size.
/// Where texts shall go on meanwhile, one of them in a step.
void HostDecoder::run_prompts_alone() {
  std::vector<Sequence*> prompts;
  for (const auto& s : sequences_.running)
    if (s->more && !s->missing_prompt().empty()) prompts.push_back(s.get());
  const auto enter = [&](Sequence& s) {
    Pass pass;
    pass.add_chunk(s, kRowsAlone);
    run(pass);
  };
  if (!prompt_share_) {
    for (Sequence* s : prompts)
      while (s->more && !s->missing_prompt().empty()) enter(*s);
    return;
  }
  if (prompts.empty()) return;
  Sequence* next = *std::min_element(prompts.begin(), prompts.end(), Sequence::enters_before);
  for (Sequence* s : prompts) ++s->prompt_passes;
  enter(*next);
}

/// Rows that prompts may take beside so many trees, as large as those of the last pass.
int64_t HostDecoder::prompt_room(int32_t num_trees) const {
  if (!prompt_share_ || num_trees == 0) return kPromptRows;
  const StepCost& cost = pruning_.cost();
  const int32_t rows = std::max(num_trees, tree_rows_);
  const double most = (1 + *prompt_share_) * cost(rows);
  int32_t room = kFewestRows;
  while (room < kPromptRows && cost(rows + room + 1) <= most) ++room;
  return room;
}

/// Chooses the rows of the next pass.
HostDecoder::Pass HostDecoder::plan() {
  Pass pass;
  std::vector<Sequence*> prompts;  // in the order they came
  for (const auto& s : sequences_.running) {
    if (!s->more) continue;
    if (s->missing_prompt().empty())
      pass.with_tree.push_back(s.get());
    else if (target_.rows_are_independent())  // else it enters alone
      prompts.push_back(s.get());
  }
  int64_t room = prompt_room(static_cast<int32_t>(pass.with_tree.size()));
  if (prompt_share_ && !prompts.empty()) {
    std::stable_sort(prompts.begin(), prompts.end(), Sequence::enters_before);
    const int64_t first = std::ssize(prompts.front()->missing_prompt());
    if (first <= kShortPrompt) room = std::max(room, first);
  }
  for (Sequence* s : prompts) {
    ++s->prompt_passes;
    if (room == 0) continue;
    s->guarded([&] {
      // Cached rows have neither logits nor features.
      if (s->prompt_rows == 0 && !s->request.on_prompt && s->drafter->feature_layers().empty())
        s->prompt_rows = s->stats.cached_prompt_tokens =
            target_.reuse_prefix(s->slot, s->missing_prompt());
      room -= pass.add_chunk(*s, room);
    });
  }
  propose(pass);
  return pass;
}

/// Fills the trees of a pass. One sequence alone weighs its own nodes; rows that several share, or
/// that fill what a prompt's chunk leaves of a tile, are dealt out by what all of them gain.
void HostDecoder::propose(Pass& pass) {
  const auto num_sequences = static_cast<int32_t>(pass.with_tree.size());
  const int32_t prompt_rows = pass.num_prompt_rows();
  const bool jointly = pruning_.is_on() && (num_sequences > 1 || prompt_rows > 0);
  const auto propose = [&](Sequence& s) {
    const DecodeLimits& limits = s.request.limits;
    const auto committed = static_cast<int64_t>(s.tokens.size()) - 1;
    const int64_t rows_left = target_.max_rows() - committed;  // for this pass, at least 1
    const auto nodes = static_cast<int32_t>(std::min<int64_t>(limits.max_nodes, rows_left));
    const auto left = static_cast<int32_t>(limits.max_new_tokens - s.stats.emitted);
    s.tree = s.drafter->propose({.tokens = s.tokens,
                                 .hidden = s.hidden,
                                 .max_depth = std::min(left, nodes) - 1,
                                 .max_nodes = nodes,
                                 .slot = s.slot,
                                 .num_sequences = num_sequences,
                                 .pruned_jointly = jointly},
                                s.request.random);
    MEDUSA_ASSERT(s.tree.size() >= 1 && s.tree.size() <= nodes, s.tree.size(), nodes);
    MEDUSA_ASSERT(s.tree.num_verify >= 1 && s.tree.num_verify <= s.tree.size(), s.tree.num_verify);
    MEDUSA_ASSERT(s.tree.tokens[0] == s.tokens.back(), s.tree.tokens[0], s.tokens.back());
  };
  for (Sequence* s : pass.with_tree) s->guarded([&] { propose(*s); });
  std::erase_if(pass.with_tree, [](const Sequence* s) { return !s->more; });
  if (jointly && !pass.with_tree.empty()) {
    std::vector<CandidateTree*> trees;
    for (Sequence* s : pass.with_tree) trees.push_back(&s->tree);
    pruning_.prune(trees, prompt_rows);
  }
  for (const Sequence* s : pass.with_tree)
    pass.trees.push_back({s->slot, &s->tree, s->drafter->feature_layers()});
}

/// A pass that throws ends every sequence in it: nobody knows which one it was.
void HostDecoder::run(Pass& pass) {
  try {
    pass.output = target_.forward(pass.trees, pass.chunks);
  } catch (...) {
    for (const auto* list : {&pass.with_tree, &pass.with_chunk})
      for (Sequence* s : *list) s->fail(std::current_exception());
    return;
  }
  for (size_t i = 0; i < pass.chunks.size(); ++i) {
    Sequence& s = *pass.with_chunk[i];
    const int64_t first = s.prompt_rows;
    s.take_prompt(std::ssize(pass.chunks[i].tokens), pass.output.prompt_states[i]);
    if (!pass.chunks[i].feature_layers.empty())
      s.guarded([&] { s.drafter->read_prompt(pass.output.prompt_features[i]); });
    if (pass.chunks[i].wants_logits)
      s.guarded([&] { s.request.on_prompt({first, pass.output.prompt_logits[i]}); });
  }
}

/// Rules are pure, so sequences are judged at the same time where the target lends its threads; for
/// a lone one they share the rows.
void HostDecoder::accept_all(Pass& pass) {
  const auto accept = [&](size_t i, ThreadPool* threads) {
    Sequence& s = *pass.with_tree[i];
    const AcceptanceRule& rule = s.request.rule ? *s.request.rule : *rule_;
    s.guarded([&] {
      const TargetLogits logits(pass.output.trees[i].logits, s.tree, &s.rows, threads);
      s.accepted =
          rule.accept(s.tree, logits, static_cast<int64_t>(s.tokens.size()) - 1, s.request.random);
    });
  };
  ThreadPool* pool = target_.idle_threads();
  if (pool == nullptr || pass.with_tree.size() == 1) {
    for (size_t i = 0; i < pass.with_tree.size(); ++i) accept(i, pool);
    return;
  }
  pool->run([&](int thread) {
    const auto stride = static_cast<size_t>(pool->num_running());
    for (auto i = static_cast<size_t>(thread); i < pass.with_tree.size(); i += stride)
      accept(i, nullptr);
  });
}

namespace {

/// Emits the accepted run and the target's own token, as far as the sequence goes on.
/// @returns  nodes whose rows stay: the root and every emitted token but the last.
template <typename Sequence>
std::vector<int32_t> emit_run(Sequence& s, const TargetOutput& output, int64_t max_rows) {
  std::vector<int32_t> keep{0};
  const std::vector<int32_t>& path = s.accepted.path;
  for (size_t i = 0;; ++i) {
    const bool is_next = i == path.size();
    const TokenId token = is_next ? s.accepted.next : s.tree.tokens[static_cast<size_t>(path[i])];
    s.tokens.push_back(token);
    s.rows.take(token);
    ++s.stats.emitted;
    const bool wanted = s.request.emit({token, &output, keep.back(), i == 0});
    const std::optional<FinishReason> finish =
        finish_reason(s.request.limits, token, s.stats.emitted,
                      static_cast<int64_t>(s.tokens.size()), wanted, max_rows);
    if (finish) {
      s.stats.finish = *finish;
      s.more = false;
    }
    if (finish || is_next) return keep;
    keep.push_back(path[i]);
  }
}

}  // namespace

/// Emits what was accepted, keeps its rows and tells the drafter.
void HostDecoder::advance(Sequence& s, const TargetOutput& output) {
  Stopwatch watch;
  if (s.request.watch) s.request.watch({s.tree, s.accepted});
  const std::vector<int32_t> keep = emit_run(s, output, target_.max_rows());
  watch.lap(times_.accept_s);
  target_.commit(s.slot, keep);
  s.drafter->observe(s.tree, output, s.accepted);
  s.hidden = output.hidden[keep.back()].clone();
  s.stats.count_step(keep.size(), s.tree.num_verify - 1,  // as many tokens as rows that stay
                     static_cast<int64_t>(s.accepted.path.size()), depth_of(s.tree));
  watch.lap(times_.commit_s);
}

/// Tells what the rows of a pass came to.
void HostDecoder::count(const Pass& pass) {
  tree_rows_ = pass.num_tree_rows();
  if (pass.output.trees.empty()) return;
  int64_t tokens = 0;
  for (const Sequence* s : pass.with_tree)
    if (s->more) tokens += 1 + std::ssize(s->accepted.path);
  pruning_.count(static_cast<int32_t>(pass.trees.size()), tree_rows_, tokens);
}

std::vector<FinishedRequest> HostDecoder::take_ended() {
  std::vector<FinishedRequest> ended;
  std::erase_if(sequences_.running, [&](const auto& s) {
    if (s->more) return false;
    target_.close(s->slot);
    ended.push_back({s->id, std::move(s->stats), s->error});
    return true;
  });
  return ended;
}

std::vector<FinishedRequest> HostDecoder::step() {
  sequences_.expect_no_step("step");
  const SequenceList<Sequence>::Step in_step(sequences_);
  Stopwatch watch;
  admit();
  if (!target_.rows_are_independent()) run_prompts_alone();
  watch.lap(times_.prefill_s);

  Pass pass = plan();
  watch.lap(times_.propose_s);
  if (!pass.empty()) {
    run(pass);
    const double seconds = watch.lap();
    const double prompts = seconds * pass.prompt_share();
    times_.prefill_s += prompts;
    times_.verify_s += seconds - prompts;
  }
  if (!pass.output.trees.empty()) accept_all(pass);
  count(pass);
  watch.lap(times_.accept_s);
  for (size_t i = 0; i < pass.output.trees.size(); ++i) {
    Sequence& s = *pass.with_tree[i];
    if (s.more) s.guarded([&] { advance(s, pass.output.trees[i]); });
  }
  return take_ended();
}

}  // namespace medusa
