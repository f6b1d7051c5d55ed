// Sums by the collectives of a backend of c10d, for tensors that lie where that backend works: NCCL
// on GPUs. Its own sum is made in an order that is its affair, which may change with its version,
// the network and the number of numbers. So here, too, each process adds up one part of them, in
// the order of the ranks, and gives the others its sums.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace medusa {

/// All processes call the same functions in the same order.
///
/// Thread safety: none.
class CollectiveSums {
 public:
  /// @param timeout  seconds for which an operation may take.
  CollectiveSums(c10::intrusive_ptr<c10d::Backend> backend, int64_t rank, int64_t world_size,
                 double timeout);
  ~CollectiveSums();
  CollectiveSums(CollectiveSums&& other) noexcept;
  CollectiveSums& operator=(CollectiveSums&&) = delete;

  /// Adds up the tensors of all processes; each then holds the sum.
  /// @param flat  [n], of one dtype everywhere.
  /// @throws UserError  a process ended, or the others did not take part in time.
  void add_up(const at::Tensor& flat);

  /// Gives all of them what process 0 has.
  void hand_out(const at::Tensor& flat);

  /// Leaves the backend behind without waiting for what it is doing: a process that has failed.
  void abandon();

 private:
  void add_up_piece(const at::Tensor& values);
  void finish(const c10::intrusive_ptr<c10d::Work>& work);

  c10::intrusive_ptr<c10d::Backend> backend_;
  int64_t rank_, world_size_;
  double timeout_;
};

}  // namespace medusa
