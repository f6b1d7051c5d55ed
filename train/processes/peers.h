// The processes that train one model together, each on its share of every batch, and what they
// exchange: sums of gradients and losses, and what process 0 knows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process_place.h"
#include "base/tcp_link.h"

namespace medusa {

/// All processes call the same functions in the same order, each of which returns when the others
/// have done their part. Process 0 adds up in the order of the ranks, so the same numbers give the
/// same bits, and all get its bytes.
///
/// They find each other through c10d's TCPStore, which torchrun serves itself, and then each has
/// one connection to process 0. (c10d's own backend for CPUs, gloo, cannot be used from C++: the
/// wheel has not its headers.) A process that ends is noticed at once, since its connection closes;
/// one that hangs, or whose machine is gone, after the timeout.
///
/// Thread safety: none.
class Peers {
 public:
  /// Returns when all have come.
  /// @param place    of this process, one of at least two.
  /// @param timeout  seconds that one may keep the others waiting.
  /// @throws UserError    they did not all come in time; process 0's machine gives no port.
  /// @throws Interrupted  Ctrl-C was pressed before that.
  Peers(const ProcessPlace& place, double timeout);
  ~Peers();

  int64_t rank() const { return place_.rank; }
  int64_t count() const { return place_.count; }
  int64_t local_rank() const { return place_.local_rank; }  // on this machine

  /// Adds up the tensors of all processes; each then holds the sum.
  /// @param values  contiguous, of one shape and dtype everywhere, on any device; overwritten.
  /// @throws UserError  a process ended or did not answer in time.
  void sum(at::Tensor values);

  /// Gives all of them what process 0 has.
  /// @param values  as above.
  void broadcast(at::Tensor values);

  /// Returns when all have come here.
  void wait_for_all();

  /// @param held    compared with process 0's.
  /// @param what    to say of a process that has another one: "has other settings".
  /// @param remedy  "give all of them the same command".
  /// @throws UserError  a process has another text than process 0.
  void check_same(const std::string& held, const std::string& what, const std::string& remedy);

 private:
  struct Link {
    int64_t rank;
    TcpLink link;
  };
  void accept_all(TcpListener& listener, const std::string& ticket);
  Deadline deadline() const;
  void send_to(Link& link, const at::Tensor& values);
  void receive_from(Link& link, const at::Tensor& values);
  [[noreturn]] void fail(int64_t rank, Transfer how) const;

  ProcessPlace place_;
  double timeout_;
  std::vector<Link> links_;  // of process 0: to all others, in their order; of others: to process 0
};

/// Nothing where one process trains alone.
std::unique_ptr<Peers> join_peers(const ProcessPlace& place, double timeout);

}  // namespace medusa
