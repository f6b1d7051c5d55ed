#include "train/processes/process_group.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

TEST(ProcessGroup, OneProcessHasNone) { EXPECT_EQ(join_processes(ProcessPlace(), 300), nullptr); }

TEST(ProcessGroup, TorchrunBringsNobodyTogether) {
  ProcessPlace place;
  place.count = 2;
  place.launcher = Launcher::Torchrun;
  EXPECT_EQ(fixtures::error_text([&] { join_processes(place, 300); }),
            "train: 2 processes were started by torchrun (RANK and WORLD_SIZE are set), expected "
            "mpirun or srun, which bring processes together through MPI; start them with mpirun -n "
            "2 medusa train …, or unset RANK and WORLD_SIZE to train alone");
}

}  // namespace
}  // namespace medusa
