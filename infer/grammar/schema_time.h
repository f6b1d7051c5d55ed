// How long the reading of JSON schemas may take where others wait for it.
#pragma once

#include "base/error.h"
#include "infer/grammar/call_budget.h"

namespace medusa {

/// Thread safety: one thread, which made it.
class SchemaTime {
 public:
  /// Any time.
  SchemaTime() : end_(CallBudget::Duration::max()) {}
  /// @param most  of the thread's CPU time from now on.
  explicit SchemaTime(CallBudget::Duration most) : end_(CallBudget::thread_time() + most) {}

  /// Looks at the clock now and then.
  /// @throws UserError  it is over.
  void check() const {
    constexpr int64_t kCallsOfLook = 16;  // a look takes as long as a short call's work
    if (calls_++ % kCallsOfLook != 0) return;
    if (CallBudget::thread_time() > end_)
      throw UserError(
          "the JSON schema takes too long to read, expected fewer branches, constants, required "
          "properties and counts in patterns; make it smaller");
  }

 private:
  CallBudget::Duration end_;
  mutable int64_t calls_ = 0;
};

}  // namespace medusa
