// Processes that MPI connects. Messages are waited for with a deadline, which MPI's own collectives
// do not have.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <mpi.h>

#include <exception>
#include <vector>

#include "base/error.h"
#include "train/processes/message_group.h"
#include "train/processes/waiting.h"

namespace medusa {
namespace {

class MpiGroup : public MessageGroup {
 public:
  MpiGroup(const ProcessPlace& place, double timeout)
      : MessageGroup(place, timeout), exceptions_(std::uncaught_exceptions()) {
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

  std::string carrier() const override { return "MPI"; }

  ~MpiGroup() override {
    // MPI_Finalize waits for the others, who may wait for this one in a sum that never comes.
    if (std::uncaught_exceptions() > exceptions_) return;
    MPI_Finalize();
  }

 private:
  void exchange(const std::vector<Message>& messages) override {
    std::vector<MPI_Request> requests(messages.size(), MPI_REQUEST_NULL);
    for (size_t i = 0; i < messages.size(); ++i) begin(messages[i], &requests[i]);
    const Waiting waiting(patience());
    for (size_t done = 0; done < requests.size();) {
      int arrived = 0;
      const int error = MPI_Test(&requests[done], &arrived, MPI_STATUS_IGNORE);
      if (error == MPI_SUCCESS && arrived != 0) {
        ++done;
      } else if (error != MPI_SUCCESS || waiting.is_over()) {
        // MPI may still write there, at exit, too.
        static auto* const never_freed = new std::vector<Message>;
        never_freed->insert(never_freed->end(), messages.begin(), messages.end());
        fail_with(messages[done].other, error);
      } else {
        waiting.pause();
      }
    }
  }

  static void begin(const Message& message, MPI_Request* request) {
    const int size = static_cast<int>(message.values.nbytes()),
              other = static_cast<int>(message.other);
    if (message.comes)
      MPI_Irecv(message.values.mutable_data_ptr(), size, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                request);
    else
      MPI_Isend(message.values.const_data_ptr(), size, MPI_BYTE, other, 0, MPI_COMM_WORLD, request);
  }

  /// @param error  MPI's; MPI_SUCCESS: there was no answer.
  [[noreturn]] void fail_with(int64_t other, int error) const {
    if (error == MPI_SUCCESS) fail_late(other);
    char words[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    MPI_Error_string(error, words, &length);
    fail_broken(other, words);
  }

  int exceptions_;  // that pass when the group is made
};

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_group(const ProcessPlace& place, double timeout) {
  return std::make_unique<MpiGroup>(place, timeout);
}

}  // namespace medusa
