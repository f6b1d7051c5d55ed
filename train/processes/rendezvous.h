// How processes that no MPI connects find each other: a store of c10d's, keys and values that
// process 0, or torchrun, holds and all reach over TCP.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>

#include "base/process.h"

namespace c10d {
class Store;
}

namespace medusa {

/// What a process has once it has found the others.
struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;  // of this start of these processes alone
  std::string own_address;  // of this machine, as seen from the meeting point: "127.0.0.1"
};

/// Meets the others. Process 0 listens on the meeting point's address alone, so on loopback nobody
/// else reaches it; whoever reaches it may take part, as nothing says who it is.
/// @param timeout  seconds for which one may keep the others waiting.
/// @throws UserError  nobody, or a stranger, listens there; the port is taken or the address
///                    another machine's; a process did not come, has come before, or was told
///                    another number of processes.
Rendezvous meet(const ProcessPlace& place, const MeetingPoint& point, double timeout);

/// Returns when all have said farewell, or after the timeout: who leaves earlier may take what it
/// has sent along.
void say_farewell(const Rendezvous& met, int64_t count) noexcept;

}  // namespace medusa
