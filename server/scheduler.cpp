#include "server/scheduler.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "data/tokenizer/text_stream.h"
#include "infer/factory.h"
#include "infer/grammar/grammar_drafter.h"
#include "infer/grammar/grammar_processor.h"
#include "infer/logits/target_logits.h"
#include "infer/sampling.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

/// Tokens of a prompt that are kept with its answer, so that who asks the same finds its beginning.
constexpr size_t kKeptPrompt = 16;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

GeneratedToken described(TokenId token, std::span<const float> row, int64_t count) {
  const LogProbabilities log_p(row);
  GeneratedToken out{token, log_p.of(token), {}};
  if (count == 0) return out;
  for (const TokenId id : largest_tokens(row, count))
    out.most_probable.emplace_back(id, log_p.of(id));
  return out;
}

}  // namespace

/// A request from submit() to its end.
struct Scheduler::Generation {
  Generation(const Tokenizer& tokenizer, const GenerationRequest& wanted)
      : drafter(wanted.drafter),
        grammar(wanted.grammar),
        stop_tokens(wanted.stop_tokens),
        max_tokens(wanted.max_tokens),
        min_tokens(wanted.logits.min_tokens),
        fills_context(wanted.fills_context),
        logprobs(wanted.logprobs),
        text(tokenizer, wanted.stop) {}

  Ticket ticket = 0;
  DecodeRequest request;
  std::shared_ptr<GenerationListener> listener;
  std::optional<DrafterKind> drafter;
  std::shared_ptr<const CompiledGrammar> grammar;  // null: any text
  std::vector<TokenId> prompt;                     // kept where its log-probabilities are asked for
  std::vector<TokenId> stop_tokens;
  int64_t prompt_size = 0, max_tokens = 0, min_tokens = 0, num_tokens = 0;
  bool fills_context = false;
  std::optional<int64_t> logprobs;
  RequestId id = -1;  // of the decoder; -1: not there yet
  TextUntilStop text;
  GenerationPiece piece;      // since the last step
  std::vector<TokenId> said;  // the prompt's end and the answer, where answers are kept
  bool is_kept = false;
  Clock::time_point submitted = Clock::now(), started, first_piece, last_piece;
  bool has_started = false, has_begun = false;  // it got a sequence; it has tokens

  /// @param own_drafter  who proposed the nodes of a tree that does not say.
  void watch(const StepView& view, DrafterKind own_drafter) {
    StepTrace& step = piece.step.emplace();
    for (int32_t i = 0; i < view.tree.num_verify; ++i) {
      const auto node = static_cast<size_t>(i);
      step.nodes.push_back({view.tree.tokens[node], view.tree.parents[node],
                            i == 0 ? DrafterKind::None : view.tree.drafter_of(i, own_drafter)});
    }
    step.accepted = view.accepted.path;
    step.next = view.accepted.next;
  }

  void count(const StepView& view) {
    ++piece.steps;
    piece.proposed += view.tree.num_verify - 1;
    piece.accepted += std::ssize(view.accepted.path);
  }

  bool take(const EmittedToken& token) {
    if (max_tokens == 0) return true;  // the decoder makes one at least
    if (is_kept) said.push_back(token.id);
    if (logprobs)
      piece.tokens.push_back(
          described(token.id, TargetLogits(token.output->logits).row(token.row), *logprobs));
    else
      piece.tokens.push_back({token.id, 0, {}});
    if (std::find(stop_tokens.begin(), stop_tokens.end(), token.id) != stop_tokens.end())
      return true;  // it ends the text, and is not shown
    const bool may_stop = ++num_tokens > min_tokens;
    piece.text += may_stop ? text.add(token.id) : text.add_unmatched(token.id);
    return !text.stopped();
  }

  void take_prompt(const PromptRows& rows) {
    if (piece.prompt.empty()) piece.prompt.push_back({prompt[0], 0, {}});
    for (int64_t i = 0; i < rows.logits.size(0); ++i)
      piece.prompt.push_back(described(prompt[static_cast<size_t>(rows.first + i + 1)],
                                       logits_row(rows.logits, i), *logprobs));
  }
};

Scheduler::Scheduler(ServedModel model, int64_t max_waiting, ServerMetrics& metrics)
    : model_(std::move(model)),
      max_waiting_(max_waiting),
      metrics_(metrics),
      cache_use_(model_.decoder.cache_use()),
      shared_use_(model_.shared != nullptr ? model_.shared->use() : SharedUse{}),
      last_step_(Clock::now()),
      thread_([this] { run(); }) {}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

DecodeRequest Scheduler::decode_request(const GenerationRequest& request) const {
  InferConfig settings = model_.settings;
  settings.sampling = request.sampling;
  settings.rule = request.rule;
  settings.drafter = request.drafter.value_or(settings.drafter);
  if (request.typical) settings.typical = *request.typical;
  if (!model_.drafters.contains(settings.drafter))
    throw ApiError(400,
                   fmt::format("medusa.drafter is '{}', which this server has not loaded, expected "
                               "one that /v1/models lists; choose one of these",
                               enum_name(settings.drafter)),
                   "medusa.drafter");
  DecodeRequest out;
  try {
    settings.validate();
    out.rule = make_rule(settings);
  } catch (const UserError& error) {
    throw ApiError(400, error.what(), "medusa");
  }
  const bool shows_drafts = request.steps || out.rule->depends_on_drafts();
  const auto& drafters = shows_drafts ? model_.unshared_drafters : model_.drafters;
  const auto drafter = drafters.find(settings.drafter);
  if (drafter == drafters.end())
    throw ApiError(400,
                   fmt::format("medusa.drafter is '{}', which proposes what others were answered, "
                               "expected one that does not beside {}; choose another one, or {}",
                               enum_name(settings.drafter),
                               request.steps ? "medusa.steps, which shows them"
                                             : fmt::format("the rule '{}', whose tokens depend on "
                                                           "drafts",
                                                           enum_name(settings.rule)),
                               request.steps ? "leave medusa.steps out" : "the rule auto"),
                   "medusa.drafter");
  const auto tokens = static_cast<int64_t>(request.prompt.size());
  if (tokens >= model_.context) throw long_prompt(tokens, model_.context, request.prompt_field);
  out.prompt = request.prompt;
  out.limits.max_new_tokens = std::max(request.max_tokens, 1);
  if (request.tree_size) out.limits.max_nodes = *request.tree_size;
  try {
    check_room(tokens, out.limits, model_.context, model_.cache_tokens);
  } catch (const UserError& error) {
    throw ApiError(400, error.what(), request.length_field, "cache_too_small");
  }
  out.limits.eos = request.stop_tokens;
  if (!request.ignore_eos)
    out.limits.eos.insert(out.limits.eos.end(), model_.eos.begin(), model_.eos.end());
  out.processors = make_processors(request.logits, out.limits.eos);
  out.random = Random(request.seed);
  out.make_drafter = drafter->second;
  if (request.grammar) {
    out.processors.emplace_back(
        [grammar = request.grammar] { return std::make_unique<GrammarProcessor>(grammar); });
    out.make_drafter = inside_grammar(out.make_drafter, settings.drafter, request.grammar);
  }
  return out;
}

Scheduler::Ticket Scheduler::submit(GenerationRequest request,
                                    std::shared_ptr<GenerationListener> listener) {
  auto generation = std::make_shared<Generation>(model_.tokenizer, request);
  generation->request = decode_request(request);
  generation->prompt_size = std::ssize(request.prompt);
  generation->is_kept = model_.shared != nullptr;
  if (generation->is_kept) {
    const auto kept = std::span(request.prompt).last(std::min(request.prompt.size(), kKeptPrompt));
    generation->said.assign(kept.begin(), kept.end());
  }
  generation->listener = std::move(listener);
  Generation* const self = generation.get();  // which outlives its request in the decoder
  generation->request.emit = [self](const EmittedToken& token) { return self->take(token); };
  if (request.prompt_logprobs) {
    MEDUSA_ASSERT(request.logprobs);
    generation->prompt = std::move(request.prompt);
    generation->request.on_prompt = [self](const PromptRows& rows) { self->take_prompt(rows); };
    if (self->prompt.size() == 1) self->piece.prompt.push_back({self->prompt[0], 0, {}});
  }
  generation->request.watch =
      [this, self, wants = request.steps,
       drafter = request.drafter.value_or(model_.settings.drafter)](const StepView& view) {
        metrics_.count_step(view, drafter);
        self->count(view);
        if (wants) self->watch(view, drafter);
      };
  {
    const std::lock_guard lock(mutex_);
    if (num_open_ >= most_open())
      throw ApiError(429,
                     fmt::format("{} requests run or wait already, expected fewer; try again "
                                 "later, or start the server with a larger --max-waiting",
                                 num_open_),
                     "", "queue_full");
    generation->ticket = next_ticket_++;
    if (num_running_ + num_waiting_ == 0) last_step_ = Clock::now();
    ++num_open_;
    ++num_waiting_;
    submitted_.push_back(generation);
  }
  wake_.notify_one();
  return generation->ticket;
}

void Scheduler::cancel(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(ticket);
  }
  wake_.notify_one();
}

SchedulerState Scheduler::state() const {
  const std::lock_guard lock(mutex_);
  const bool works = num_running_ + num_waiting_ > 0;
  return {num_running_, num_waiting_, works ? seconds_between(last_step_, Clock::now()) : 0,
          cache_use_, shared_use_};
}

void Scheduler::run() {
  const c10::InferenceMode no_gradients;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] {
        return stopping_ || !submitted_.empty() || !cancelled_.empty() || !open_.empty();
      });
      if (stopping_) break;
    }
    take_inbox();
    if (!open_.empty()) step();
    const std::lock_guard lock(mutex_);
    num_running_ = model_.decoder.num_running();
    num_waiting_ = model_.decoder.num_waiting() + static_cast<int64_t>(submitted_.size());
    cache_use_ = model_.decoder.cache_use();
    if (model_.shared != nullptr) shared_use_ = model_.shared->use();
    last_step_ = Clock::now();
    note_slots();
  }
  take_inbox();
  while (!open_.empty()) {
    const auto first = open_.begin();
    end(first, model_.decoder.cancel(first->second->id).value_or(DecodeStats{}), nullptr);
  }
}

std::vector<SlotState> Scheduler::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

void Scheduler::note_slots() {
  slots_.clear();
  for (const auto& [ticket, g] : open_) {
    const DecodeStats* stats = model_.decoder.stats(g->id);
    if (stats == nullptr) continue;
    const bool is_running = std::ssize(slots_) < num_running_;  // they start in order
    if (is_running) note_start(*g);
    slots_.push_back({.ticket = ticket,
                      .is_running = is_running,
                      .drafter = g->drafter.value_or(model_.settings.drafter),
                      .prompt_tokens = g->prompt_size,
                      .tokens = stats->emitted,
                      .steps = stats->steps,
                      .tree_nodes = stats->steps > 0 ? 1 + stats->last_proposed : 0,
                      .proposed = stats->proposed,
                      .accepted = stats->accepted});
  }
}

void Scheduler::take_inbox() {
  std::vector<std::shared_ptr<Generation>> submitted;
  std::vector<Ticket> cancelled;
  {
    const std::lock_guard lock(mutex_);
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
  }
  for (const auto& generation : submitted) {
    const auto which = open_.emplace(generation->ticket, generation).first;
    try {
      generation->id = model_.decoder.submit(std::move(generation->request));
      by_request_.emplace(generation->id, generation->ticket);
    } catch (...) {
      DecodeStats failed;
      failed.finish = FinishReason::Failed;
      end(which, std::move(failed), std::current_exception());
    }
  }
  for (const Ticket ticket : cancelled) {
    const auto which = open_.find(ticket);
    if (which == open_.end()) continue;
    end(which, model_.decoder.cancel(which->second->id).value_or(DecodeStats{}), nullptr);
  }
}

/// It has had a sequence in the last step, at the latest.
void Scheduler::note_start(Generation& g) {
  if (std::exchange(g.has_started, true)) return;
  g.started = std::max(g.submitted, step_began_);
  metrics_.count_start(seconds_between(g.submitted, g.started));
}

void Scheduler::step() {
  step_began_ = Clock::now();
  for (const auto& [ticket, generation] : open_)
    if (generation->grammar) generation->grammar->begin_step();
  auto ended = model_.decoder.step();
  const auto now = Clock::now();
  for (const auto& [ticket, generation] : open_) {
    Generation& g = *generation;
    if (g.piece.tokens.empty()) continue;
    const auto tokens = static_cast<int64_t>(g.piece.tokens.size());
    if (std::exchange(g.has_begun, true)) {
      metrics_.count_tokens(tokens, seconds_between(g.last_piece, now));
    } else {
      note_start(g);
      g.first_piece = now;
      metrics_.count_first_tokens(tokens, seconds_between(g.submitted, now),
                                  seconds_between(g.started, now));
    }
    g.last_piece = now;
    g.listener->on_piece(std::exchange(g.piece, {}));
  }
  for (FinishedRequest& each : ended) {
    const auto ticket = by_request_.find(each.id);
    MEDUSA_ASSERT(ticket != by_request_.end(), each.id);
    end(open_.find(ticket->second), std::move(each.stats), each.error);
  }
}

void Scheduler::end(std::map<Ticket, std::shared_ptr<Generation>>::iterator which,
                    DecodeStats stats, std::exception_ptr error) {
  const std::shared_ptr<Generation> g = std::move(which->second);
  open_.erase(which);
  by_request_.erase(g->id);
  if (stats.finish != FinishReason::Cancelled) {
    GenerationPiece rest;
    if (g->max_tokens == 0) rest = std::move(g->piece);  // what it says of the prompt
    if (g->grammar) g->text.drop_unfinished();  // U+FFFD would begin no text of the grammar
    rest.text = g->text.finish();
    if (!rest.text.empty() || !rest.prompt.empty()) g->listener->on_piece(std::move(rest));
  }
  const bool is_whole =
      stats.finish != FinishReason::Cancelled && stats.finish != FinishReason::Failed;
  if (g->is_kept && is_whole) model_.shared->add(std::move(g->said));
  const auto now = Clock::now();
  if (g->max_tokens == 0) stats.emitted = 0;
  if (g->fills_context && stats.finish == FinishReason::Length)
    stats.finish = FinishReason::Context;
  metrics_.count_end(stats, g->prompt_size, g->max_tokens, seconds_between(g->submitted, now),
                     g->has_begun ? seconds_between(g->first_piece, now) : -1);
  {
    const std::lock_guard lock(mutex_);
    --num_open_;
  }
  g->listener->on_end({std::move(stats), g->text.stop(), std::move(error)});
}

}  // namespace medusa
