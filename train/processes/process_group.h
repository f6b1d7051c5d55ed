// The processes that train one model together, each on its share of every batch, and what they
// exchange: sums of gradients and losses, and what process 0 knows. MPI carries it, or c10d with
// gloo and NCCL; whoever started the processes (mpirun, srun, torchrun) said how many there are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"

namespace medusa {

/// How long a process waits for another one: process 0 tells which one is missing, and the others
/// wait a little longer, so that it speaks first. Seconds.
inline double patience_of(const ProcessPlace& place, double timeout) {
  return (place.rank == 0 ? 1 : 1.25) * timeout;
}

/// All processes call the same functions in the same order, each of which returns when the others
/// have done their part. Destroyed while an exception passes, a group waits for nobody: the process
/// ends with its error, and the launcher ends the others.
///
/// Thread safety: none.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return place_.rank; }
  int64_t world_size() const { return place_.world_size; }
  int64_t local_rank() const { return place_.local_rank; }  // on this machine

  /// Adds up the tensors of all processes; each then holds the sum. The same number of processes
  /// with the same values gets the same bytes.
  /// @param values  contiguous, of one shape and dtype everywhere; overwritten. Those of a GPU pass
  ///                through the CPU's memory where not NCCL carries them.
  /// @throws UserError  a process ended or did not answer in time.
  void all_reduce(const at::Tensor& values);

  /// Gives all of them what process 0 has.
  /// @param values  as above.
  void broadcast(const at::Tensor& values);

  /// What carries the sums, to say: "MPI".
  virtual std::string carrier() const = 0;

  /// Returns when all have come here.
  void barrier();

  /// @param held    compared with process 0's.
  /// @param what    to say of a process that has another one: "has other settings".
  /// @param remedy  "give all of them the same command".
  /// @throws UserError  a process has another text than process 0.
  void check_same(const std::string& held, const std::string& what, const std::string& remedy);

  struct CpuShare {
    int64_t cpus = 1;       // of this process
    int64_t processes = 1;  // on this machine
  };

  /// The CPUs of this process's share: those that it may use, divided by the processes of this
  /// machine that may use some of them, too. Launchers that bind processes give each its own.
  /// @param allowed  as allowed_cpus() gives them.
  CpuShare own_cpus(const std::vector<int>& allowed);

  /// @param gpu  of this machine, on which this process computes.
  /// @throws UserError  another process computes there, too.
  void check_own_gpu(int64_t gpu);

 protected:
  explicit ProcessGroup(const ProcessPlace& place) : place_(place) {}

  const ProcessPlace place_;

 private:
  /// Whether tensors of a device need not pass through the CPU's memory.
  virtual bool reaches(at::Device device) const { return device.is_cpu(); }

  /// @param values  [n], of a device that it reaches.
  virtual void add_up(const at::Tensor& values) = 0;
  virtual void hand_out(const at::Tensor& values) = 0;  // process 0's

  template <typename Exchange>
  void exchange_there(const at::Tensor& values, const Exchange& exchange) const;
};

/// Brings the processes together that a launcher has started: through MPI where that started them
/// and they compute on CPUs, else through c10d.
/// @param device   where this one computes.
/// @param timeout  seconds for which one may keep the others waiting.
/// @returns  nothing where one process trains alone.
/// @throws UserError  as make_mpi_group() and make_c10d_group().
std::unique_ptr<ProcessGroup> join_processes(const ProcessPlace& place, at::Device device,
                                             double timeout);

/// Of at least two processes.
/// @throws UserError  the program was built without MPI; the launcher speaks no MPI, or another
///                    one's.
std::unique_ptr<ProcessGroup> make_mpi_group(const ProcessPlace& place, double timeout);

/// Of at least two processes: gloo between CPUs, and NCCL between GPUs where the build has it.
/// @throws UserError  the processes do not find each other (rendezvous.h); two of them have one
/// GPU.
std::unique_ptr<ProcessGroup> make_c10d_group(const ProcessPlace& place, const MeetingPoint& point,
                                              at::Device device, double timeout);

}  // namespace medusa
