// One thread that owns the decoder: requests come in from other threads, pieces of text go out.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/generation.h"
#include "server/metrics/metrics.h"
#include "server/served_model.h"

namespace medusa {

struct SchedulerState {
  int64_t running = 0;
  int64_t waiting = 0;
  double seconds_since_step = 0;  // 0 while there is nothing to do
  KvUse cache;                    // after the last step
  SharedUse shared;               // answers that are kept for others
};

/// A request that runs or waits, as it stood after the last step.
struct SlotState {
  uint64_t ticket = 0;
  bool is_running = false;  // false: it waits for a free sequence
  DrafterKind drafter = DrafterKind::None;
  int64_t prompt_tokens = 0, tokens = 0;  // of the prompt; of the text so far
  int64_t steps = 0;
  int64_t tree_nodes = 0;              // of the last step's tree, the root included; 0: no step yet
  int64_t proposed = 0, accepted = 0;  // candidates of all steps
};

/// Thread safety: all functions may be called from any thread, but not from a listener.
class Scheduler {
 public:
  using Ticket = uint64_t;

  /// @param max_waiting  requests that may wait while all sequences are taken; more are refused.
  Scheduler(ServedModel model, int64_t max_waiting, ServerMetrics& metrics);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// How many requests may run and wait together: as many at once are more than it ever takes.
  int64_t most_open() const { return model_.num_sequences + max_waiting_; }

  /// Queues a request.
  /// @throws ApiError  429: too many wait. 400: the request can never fit into the context or the
  ///                   cache, or drafter, rule and sampling do not go together; the message says
  ///                   which.
  Ticket submit(GenerationRequest request, std::shared_ptr<GenerationListener> listener);

  /// Ends a request before the next step. Nothing happens if it has ended.
  void cancel(Ticket ticket);

  /// Ends what still runs: its listeners hear FinishReason::Cancelled. After it, submit() and
  /// cancel() do nothing that anybody hears of.
  void stop();

  SchedulerState state() const;
  /// Lists all requests that run or wait, in the order in which they came.
  std::vector<SlotState> slots() const;
  const ServedModel& model() const { return model_; }

 private:
  struct Generation;

  DecodeRequest decode_request(const GenerationRequest& request) const;
  void run();
  void take_inbox();
  void step();
  void note_slots();
  void note_start(Generation& generation);
  void end(std::map<Ticket, std::shared_ptr<Generation>>::iterator which, DecodeStats stats,
           std::exception_ptr error);

  const ServedModel model_;
  const int64_t max_waiting_;
  ServerMetrics& metrics_;

  mutable std::mutex mutex_;  // of what follows, up to the empty line
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Generation>> submitted_;
  std::vector<Ticket> cancelled_;
  Ticket next_ticket_ = 1;
  bool stopping_ = false;
  int64_t num_running_ = 0, num_waiting_ = 0;  // num_waiting_ counts submitted_, too
  int64_t num_open_ = 0;  // from submit() to just before the end is heard, so that whoever has
                          // heard it finds the place free
  std::vector<SlotState> slots_;
  KvUse cache_use_;
  SharedUse shared_use_;
  std::chrono::steady_clock::time_point last_step_;

  std::map<Ticket, std::shared_ptr<Generation>> open_;  // of the thread alone, as all below
  std::map<RequestId, Ticket> by_request_;
  std::chrono::steady_clock::time_point step_began_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace medusa
