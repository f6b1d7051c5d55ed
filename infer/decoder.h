// The speculative decoding loop as everybody calls it: requests go in, step() runs one pass over
// all of them, emit() gives their tokens. host_decoder.h and cuda/device_decoder.h are the two
// loops behind it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "infer/decode_request.h"

namespace medusa {

/// A request that has ended.
struct FinishedRequest {
  RequestId id = 0;
  DecodeStats stats;
  std::exception_ptr error{};  // what ended it, if finish is Failed; else null
};

/// Runs requests, as many at a time as the target has free slots and room for all that they may
/// need; the others wait in order. A request that fails gives its slot and its room back and leaves
/// the others running.
///
/// Thread safety: one thread at a time. emit() and the other callbacks of a request must not call
/// submit(), step() or cancel(); a request whose callback does ends with a UserError.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Queues a request. It starts in the first step() that finds a free slot and room.
  /// @throws UserError  it can never run here: an empty prompt, a prompt longer than the context, a
  ///                    need that all of the cache cannot meet, a drafter or a rule that this
  ///                    decoder does not run.
  virtual RequestId submit(DecodeRequest request) = 0;

  /// Starts waiting requests where there is room, then runs one pass over all that have started.
  /// Does nothing when idle().
  /// @returns  the requests that ended in this step, in the order of their ids.
  virtual std::vector<FinishedRequest> step() = 0;

  /// Ends a request now and gives its slot back; emit() is not called for it again.
  /// @returns  what it had done; nothing if the id is unknown or has ended.
  virtual std::optional<DecodeStats> cancel(RequestId id) = 0;

  /// Tells what a request has done so far; null: its id is unknown or has ended. Valid until the
  /// next call of another function.
  virtual const DecodeStats* stats(RequestId id) const = 0;

  virtual int64_t num_waiting() const = 0;  // requests that have no slot yet
  virtual int64_t num_running() const = 0;  // requests that have one

  /// Slots that no running or waiting request needs.
  virtual int64_t num_free() const = 0;

  /// Tells what the target's cache holds now.
  virtual KvUse cache_use() const = 0;

  /// Tells where the time of all steps so far went.
  virtual const DecodeTimes& times() const = 0;

  bool idle() const { return num_waiting() + num_running() == 0; }

  /// Runs step() until idle().
  /// @returns  all requests that ended, in order.
  std::vector<FinishedRequest> drain();

  /// Cancels every request.
  virtual void cancel_all() = 0;

  /// Tells what it has prepared on a GPU so far, a line each for people; empty: nothing.
  virtual std::string report() const { return {}; }
};

/// Feeds a decoder that is idle until next() has no more: a slot that becomes free is refilled at
/// once. finished(i, stats) is called once per request, in the order in which they end; i counts
/// calls of next(). Returns early, with everything cancelled, when finished() returns false.
/// @returns  where the time went, of this call alone.
/// @throws   what submit() throws or what made a request fail. Everything is cancelled then; what
///           was emitted stands.
DecodeTimes decode(Decoder& decoder, const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished);

/// Decodes on the host's loop over this target, for requests that all have this rule and drafter.
/// @param target  has a free slot.
/// @param rule    judges the sequences of a pass at the same time, on several threads.
DecodeTimes decode(TargetModel& target, const AcceptanceRule& rule,
                   const DrafterFactory& make_drafter,
                   const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished);

/// One request by itself.
struct DecodeResult {
  DecodeStats stats;
  DecodeTimes times;
};
DecodeResult decode_one(TargetModel& target, const AcceptanceRule& rule,
                        const DrafterFactory& make_drafter, DecodeRequest request);

}  // namespace medusa
