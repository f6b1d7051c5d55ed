// Which code computes.
#pragma once

namespace medusa {

enum class Kernels {
  Auto,   // the fastest that this machine and dtype have
  Plain,  // LibTorch's ops and plain loops: the slow twin that everything is tested against
};

}  // namespace medusa
