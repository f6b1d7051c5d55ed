// The tile registers of the calling thread.
#pragma once

namespace medusa {

/// While alive, the thread's eight tile registers are set up for our kernels: 16 rows of 64 bytes
/// each. Other libraries (oneDNN) configure them for themselves, so hold one only around our calls.
class TileState {
 public:
  TileState();
  ~TileState();
  TileState(const TileState&) = delete;
  TileState& operator=(const TileState&) = delete;
};

}  // namespace medusa
