// The sequences of a decoding loop, and what every loop knows of one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "infer/decode_request.h"

namespace medusa {

/// A sequence from submit() to its end.
struct DecodedSequence {
  RequestId id = 0;
  DecodeRequest request;
  int32_t slot = -1;  // -1: waiting
  DecodeStats stats;
  bool more = true;
  std::exception_ptr error{};

  void fail(std::exception_ptr why) {
    error = std::move(why);
    stats.finish = FinishReason::Failed;
    more = false;
  }
};

/// Those that wait and those that have a slot.
///
/// @tparam Sequence  derives from DecodedSequence.
template <typename Sequence>
class SequenceList {
 public:
  using Pointer = std::shared_ptr<Sequence>;

  /// Queues a request.
  RequestId add(DecodeRequest request) {
    auto s = std::make_shared<Sequence>();
    s->id = next_id_++;
    s->request = std::move(request);
    waiting.push_back(std::move(s));
    return waiting.back()->id;
  }

  /// Moves the sequence that waits longest to those that have a slot.
  Sequence& start_next() {
    running.push_back(std::move(waiting.front()));
    waiting.pop_front();
    return *running.back();
  }

  /// Tells what a request has done so far; null: its id is unknown or has ended.
  const DecodeStats* stats(RequestId id) const {
    if (const auto at = find(running, id); at != running.end()) return &(*at)->stats;
    if (const auto at = find(waiting, id); at != waiting.end()) return &(*at)->stats;
    return nullptr;
  }

  /// Finds a sequence that has a slot; null: there is none of this id.
  Pointer running_one(RequestId id) const {
    const auto at = find(running, id);
    return at == running.end() ? nullptr : *at;
  }

  /// Takes a sequence out that waits.
  /// @returns  what it had done; nothing if none of this id waits.
  std::optional<DecodeStats> cancel_waiting(RequestId id) {
    const auto at = find(waiting, id);
    if (at == waiting.end()) return std::nullopt;
    DecodeStats stats = std::move((*at)->stats);
    waiting.erase(at);
    stats.finish = FinishReason::Cancelled;
    return stats;
  }

  /// @throws UserError  a step is running: emit() or another callback called the decoder.
  void expect_no_step(const char* function) const {
    if (!in_step_) return;
    throw UserError(std::string("Decoder::") + function +
                    "() was called while a step runs, expected a call between two steps; note in "
                    "the callback what is to be done, and do it when step() has returned");
  }

  /// Says that a step runs, as long as it lives.
  class Step {
   public:
    explicit Step(SequenceList& list) : list_(list) { list_.in_step_ = true; }
    ~Step() { list_.in_step_ = false; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    SequenceList& list_;
  };

  std::deque<Pointer> waiting;   // by id
  std::vector<Pointer> running;  // those that have a slot

 private:
  template <typename List>
  static auto find(List& list, RequestId id) {
    return std::find_if(list.begin(), list.end(), [id](const auto& s) { return s->id == id; });
  }

  RequestId next_id_ = 0;
  bool in_step_ = false;
};

}  // namespace medusa
