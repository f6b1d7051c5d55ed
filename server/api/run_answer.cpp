#include "server/api/run_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "base/elapsed.h"
#include "base/error.h"
#include "server/event_queue.h"

namespace medusa {
namespace {

namespace asio = boost::asio;

constexpr const char* kSignOfLife = ": still working\n\n";  // a comment of event streams
constexpr size_t kUnwritten = 1 << 20;  // bytes of text that may wait for a slow reader

/// The generations of one request, which end with it.
class OpenGenerations {
 public:
  OpenGenerations(Scheduler& scheduler, asio::any_io_executor executor)
      : scheduler_(scheduler), queue_(std::make_shared<EventQueue>(std::move(executor))) {}
  ~OpenGenerations() {
    for (const Scheduler::Ticket ticket : tickets_) scheduler_.cancel(ticket);
  }
  OpenGenerations(const OpenGenerations&) = delete;
  OpenGenerations& operator=(const OpenGenerations&) = delete;

  void submit(const std::vector<GenerationRequest>& choices) {
    for (size_t i = 0; i < choices.size(); ++i)
      tickets_.push_back(scheduler_.submit(choices[i], queue_->listener(i)));
  }
  const std::shared_ptr<EventQueue>& queue() const { return queue_; }

 private:
  Scheduler& scheduler_;
  std::shared_ptr<EventQueue> queue_;
  std::vector<Scheduler::Ticket> tickets_;
};

/// @throws ApiError  400: the answers are more than ever run and wait together, so that asking
///                   again would not help.
void expect_they_can_wait(const CompletionRequest& request, int64_t most) {
  const auto wanted = std::ssize(request.choices);
  if (wanted <= most) return;
  const int64_t each = request.choices_per_prompt, prompts = wanted / each;
  throw ApiError(
      400,
      fmt::format("{} with n = {} asks for {} answers, expected at most {}, as many as run and "
                  "wait here together; ask for fewer at once, or start the server with a larger "
                  "--max-waiting",
                  prompts == 1 ? "a prompt" : fmt::format("a list of {} prompts", prompts), each,
                  wanted, most),
      prompts == 1 ? "n" : "prompt", "too_many_answers");
}

/// Whether the whole answer may be tens of megabytes: kMostListed entries take seconds to write.
bool lists_much(const CompletionRequest& request) {
  return request.steps || (!request.choices.empty() && request.choices.front().logprobs);
}

[[noreturn]] void throw_failure(const GenerationEnd& end) {
  if (end.error) try {
      std::rethrow_exception(end.error);
    } catch (const ApiError&) {
      throw;
    } catch (const UserError& error) {  // what it asks for leads nowhere
      throw ApiError(400, error.what());
    } catch (const std::exception& error) {
      throw server_fault(error);
    }
  throw ApiError(503, "the answer could not be completed: the server is stopping");
}

bool has_failed(const GenerationEnd& end) {
  return end.error || end.stats.finish == FinishReason::Cancelled ||
         end.stats.finish == FinishReason::Failed;
}

void note(const GenerationEvent& event, const AnswerTimes& times, LoggedRequest::Generated& log) {
  if (event.piece && !event.piece->tokens.empty()) {
    log.stats.steps += event.piece->steps;
    log.stats.proposed += event.piece->proposed;
    log.stats.accepted += event.piece->accepted;
    log.tokens += std::ssize(event.piece->tokens);
    if (!log.first_token_seconds) log.first_token_seconds = seconds_since(times.came);
  }
  if (event.end) log.reasons.emplace_back(event.end->reason());
}

void expect_in_time(const AnswerTimes& times) {
  if (times.deadline.count() == 0 || std::chrono::steady_clock::now() < times.came + times.deadline)
    return;
  throw ApiError(
      504,
      fmt::format("the answer is not complete after {:.3g} s, expected it to be; ask for "
                  "fewer tokens, or start the server with a longer --deadline",
                  std::chrono::duration<double>(times.deadline).count()),
      "", "deadline_exceeded");
}

/// The next event; an empty one after a silence.
/// @throws  the client has gone, or reads too slowly; the generation failed; it is too late.
asio::awaitable<GenerationEvent> next_event(EventQueue& queue, const AnswerTimes& times,
                                            LoggedRequest::Generated& log) {
  using Clock = std::chrono::steady_clock;
  Clock::duration patience = times.ping;
  if (times.deadline.count() > 0)
    patience = std::clamp(times.came + times.deadline - Clock::now(), Clock::duration(0), patience);
  GenerationEvent event = co_await queue.next(patience);
  if (queue.is_client_gone() || queue.waiting_bytes() > kUnwritten)
    throw boost::system::system_error(asio::error::connection_aborted);
  if (event.end && has_failed(*event.end)) throw_failure(*event.end);
  if (!event.end) expect_in_time(times);
  note(event, times, log);
  co_return event;
}

asio::awaitable<void> stream(EventQueue& queue, size_t open, AnswerWriter& writer,
                             const AnswerTimes& times, HttpAnswer& answer, LoggedRequest& log) {
  co_await answer.begin_stream();
  std::string text = writer.first_events();
  if (!text.empty()) co_await answer.write(std::move(text));
  std::optional<ApiError> failure;
  try {
    while (open > 0) {
      const GenerationEvent event = co_await next_event(queue, times, *log.generated);
      if (event.end) --open;
      text = event.piece ? writer.events(event.choice, *event.piece)
             : event.end ? writer.events(event.choice, *event.end)
                         : std::string(kSignOfLife);
      if (queue.take_client_end() && text.empty()) text = kSignOfLife;
      if (!text.empty()) co_await answer.write(std::move(text));
    }
  } catch (const ApiError& error) {  // too late for a status
    failure = error;
  } catch (const boost::system::system_error&) {  // of the connection: nobody to tell
    throw;
  } catch (const std::exception& error) {
    failure = server_fault(error);
  }
  // No ?: inside of co_await, of which g++ 12 evaluates both sides.
  if (failure) {
    note_refusal(*failure, log);
    text = writer.failure_events(*failure);
  } else {
    text = writer.last_events();
  }
  co_await answer.write(std::move(text));
  co_await answer.end_stream();
}

}  // namespace

asio::awaitable<void> run_answer(AnswerParts parts, const CompletionRequest& request,
                                 AnswerWriter& writer, const AnswerTimes& times, HttpAnswer& answer,
                                 LoggedRequest& log) {
  OpenGenerations generations(parts.scheduler, co_await asio::this_coro::executor);
  expect_in_time(times);  // a grammar may have taken long
  expect_they_can_wait(request, parts.scheduler.most_open());
  generations.submit(request.choices);
  parts.metrics.count_prompt(request.prompt_tokens);
  log.generated.emplace().prompt_tokens = request.prompt_tokens;
  const std::shared_ptr<EventQueue> queue = generations.queue();
  answer.on_leaving([queue] { queue->client_ended(); }, [queue] { queue->client_gone(); });
  size_t open = request.choices.size();
  if (request.stream) {
    co_await stream(*queue, open, writer, times, answer, log);
    co_return;
  }
  while (open > 0) {
    const GenerationEvent event = co_await next_event(*queue, times, *log.generated);
    if (event.end) --open;
    if (event.piece) writer.add(event.choice, *event.piece);
    if (event.end) writer.add(event.choice, *event.end);
    if (queue->take_client_end()) co_await answer.write_sign_of_life();
  }
  std::string whole;
  const std::function<void()> write = [&] { whole = writer.whole(); };
  if (lists_much(request))
    co_await parts.aside.run(write);
  else
    write();
  co_await answer.reply(200, "application/json", std::move(whole));
}

}  // namespace medusa
