// A port on this machine that nobody listens on.
#pragma once

#include "base/process_place.h"
#include "base/tcp_link.h"

namespace medusa {

inline int64_t free_port() { return TcpListener("127.0.0.1").port(); }

/// Process `rank` of `count` on this machine, without a launcher.
inline ProcessPlace local_place(int64_t rank, int64_t count, int64_t port) {
  ProcessPlace place;
  place.rank = place.local_rank = rank;
  place.count = place.local_count = count;
  place.port = port;
  return place;
}

}  // namespace medusa
