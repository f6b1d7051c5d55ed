// Processes that send each other messages, whatever carries these. Sums are made of messages
// between two processes and not by a library's own sum, whose order is that library's affair: each
// process adds up one part of the numbers, in the order of the ranks, and gives the others its
// sums. Each process sends 2 (P - 1) / P times the numbers, whatever P is.
#pragma once

#include <vector>

#include "train/processes/process_group.h"

namespace medusa {

/// A tensor on its way between this process and another one.
struct Message {
  int64_t other = 0;
  at::Tensor values;   // of a CPU, contiguous
  bool comes = false;  // from the other, into values; otherwise it goes there
};

/// Thread safety: none.
class MessageGroup : public ProcessGroup {
 protected:
  /// @param timeout  seconds for which one may keep the others waiting.
  MessageGroup(const ProcessPlace& place, double timeout)
      : ProcessGroup(place), timeout_(timeout) {}

  double patience() const { return patience_of(place_, timeout_); }

  /// @throws UserError  that the other did not answer in time.
  [[noreturn]] void fail_late(int64_t other) const;

  /// @param words  of what carries the messages.
  /// @throws UserError  that the other is gone.
  [[noreturn]] void fail_broken(int64_t other, const std::string& words) const;

  void add_up(const at::Tensor& flat) override;
  void hand_out(const at::Tensor& flat) override;

 private:
  /// Returns when all of them have gone and come. Between two processes they arrive in the order in
  /// which they were sent.
  /// @param messages  none of them empty.
  /// @throws UserError  by fail_late() or fail_broken().
  virtual void exchange(const std::vector<Message>& messages) = 0;

  [[noreturn]] void fail(int64_t other, const std::string& what) const;
  at::Tensor part_of(const at::Tensor& values, int64_t process) const;
  void add_up_piece(const at::Tensor& values);

  double timeout_;
};

}  // namespace medusa
