// Processes that MPI connects. Sums are made of messages between two processes and not by
// MPI_Allreduce, whose order is the library's affair: each process adds up one part of the numbers,
// in the order of the ranks, and gives the others its sums. Messages are waited for with a
// deadline, which MPI's own collectives do not have.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"
#include "train/processes/process_group.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostOfPart = int64_t{1} << 20;  // numbers that one process adds up at a time
constexpr std::chrono::milliseconds kEager{2};     // of asking without a pause
constexpr std::chrono::microseconds kPause{100};   // between two questions afterwards
// Process 0 tells which one is missing; the others wait a little longer, so that it speaks first.
constexpr double kPatienceOfOthers = 1.25;

/// Messages under way, and with whom.
struct Exchange {
  std::vector<MPI_Request> requests;
  std::vector<int64_t> others;
};

class MpiGroup : public ProcessGroup {
 public:
  MpiGroup(const ProcessPlace& place, double timeout)
      : ProcessGroup(place),
        timeout_((place.rank == 0 ? 1 : kPatienceOfOthers) * timeout),
        said_timeout_(timeout),
        exceptions_(std::uncaught_exceptions()) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == place.rank && size == place.world_size) return;
    MPI_Finalize();
    throw UserError(fmt::format(
        "train: the environment says process {} of {}, MPI says {} of {}, expected the same; start "
        "the processes with mpirun, or with srun --mpi=pmix, of the MPI that the program was built "
        "with",
        place.rank, place.world_size, rank, size));
  }

  ~MpiGroup() override {
    // MPI_Finalize waits for the others, who may wait for this one in a sum that never comes.
    if (std::uncaught_exceptions() > exceptions_) return;
    MPI_Finalize();
  }

  void add_up(const at::Tensor& flat) override {
    const int64_t piece = kMostOfPart * world_size();
    for (int64_t begin = 0; begin < flat.numel(); begin += piece)
      add_up_piece(flat.narrow(0, begin, std::min(piece, flat.numel() - begin)));
  }

  void hand_out(const at::Tensor& flat) override {
    for (int64_t begin = 0; begin < flat.numel(); begin += kMostOfPart) {
      const at::Tensor piece = flat.narrow(0, begin, std::min(kMostOfPart, flat.numel() - begin));
      Exchange exchange;
      if (rank() != 0) receive(piece, 0, exchange);
      for (int64_t other = 1; rank() == 0 && other < world_size(); ++other)
        send(piece, other, exchange);
      finish(exchange, {piece});
    }
  }

 private:
  /// The part of some values that a process adds up.
  at::Tensor part_of(const at::Tensor& values, int64_t process) const {
    const int64_t begin = values.numel() * process / world_size(),
                  end = values.numel() * (process + 1) / world_size();
    return values.narrow(0, begin, end - begin);
  }

  /// @param values  [n], which all hold the sum of afterwards.
  void add_up_piece(const at::Tensor& values) {
    const at::Tensor own = part_of(values, rank());
    const at::Tensor parts = at::empty({world_size(), own.numel()}, own.options());
    Exchange first;
    for (int64_t other = 0; other < world_size(); ++other) {
      if (other == rank()) continue;
      receive(parts[other], other, first);
      send(part_of(values, other), other, first);
    }
    parts[rank()].copy_(own);
    finish(first, {values, parts});
    own.copy_(parts[0]);
    for (int64_t process = 1; process < world_size(); ++process) own.add_(parts[process]);
    Exchange second;
    for (int64_t other = 0; other < world_size(); ++other) {
      if (other == rank()) continue;
      receive(part_of(values, other), other, second);
      send(own, other, second);
    }
    finish(second, {values});
  }

  void send(const at::Tensor& values, int64_t to, Exchange& exchange) {
    MPI_Isend(values.const_data_ptr(), static_cast<int>(values.nbytes()), MPI_BYTE,
              static_cast<int>(to), 0, MPI_COMM_WORLD, &add_request(to, exchange));
  }
  void receive(const at::Tensor& values, int64_t from, Exchange& exchange) {
    MPI_Irecv(values.mutable_data_ptr(), static_cast<int>(values.nbytes()), MPI_BYTE,
              static_cast<int>(from), 0, MPI_COMM_WORLD, &add_request(from, exchange));
  }
  static MPI_Request& add_request(int64_t other, Exchange& exchange) {
    exchange.others.push_back(other);
    return exchange.requests.emplace_back(MPI_REQUEST_NULL);
  }

  /// Waits until all messages have gone and come.
  /// @param buffers  that they use.
  void finish(Exchange& exchange, std::vector<at::Tensor> buffers) {
    const auto began = Clock::now();
    const auto end = began + std::chrono::milliseconds(static_cast<int64_t>(1000 * timeout_));
    for (size_t done = 0; done < exchange.requests.size();) {
      int arrived = 0;
      const int error = MPI_Test(&exchange.requests[done], &arrived, MPI_STATUS_IGNORE);
      const bool late = Clock::now() > end;
      if (error == MPI_SUCCESS && arrived != 0) {
        ++done;
      } else if (error != MPI_SUCCESS || late) {
        // MPI may still write there, at exit, too.
        static auto* const never_freed = new std::vector<at::Tensor>;
        never_freed->insert(never_freed->end(), buffers.begin(), buffers.end());
        fail(exchange.others[done], error);
      } else if (Clock::now() - began < kEager) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  /// @param error  MPI's; MPI_SUCCESS: there was no answer.
  [[noreturn]] void fail(int64_t other, int error) const {
    char words[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    if (error != MPI_SUCCESS) MPI_Error_string(error, words, &length);
    const std::string what =
        error == MPI_SUCCESS
            ? fmt::format("did not answer for {} s", said_timeout_)
            : fmt::format("ended, its connection broke, or it exchanges something else ({})",
                          words);
    throw UserError(fmt::format(
        "train: process {} of {} {}, expected it to go on with process {}; look at what it printed "
        "and start all of them again, which continues from the last checkpoint",
        other, world_size(), what, rank()));
  }

  double timeout_, said_timeout_;
  int exceptions_;  // that pass when the group is made
};

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_group(const ProcessPlace& place, double timeout) {
  return std::make_unique<MpiGroup>(place, timeout);
}

}  // namespace medusa
