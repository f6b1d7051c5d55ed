#include "train/processes/rendezvous.h"

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/processes/process_group.h"
#include "train/processes/waiting.h"

namespace medusa {
namespace {

std::string name_of(const MeetingPoint& point) {
  return fmt::format("{}:{}", point.address, point.port);
}

/// The addresses that a name has.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const MeetingPoint& point) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(point.address.c_str(), std::to_string(point.port).c_str(), &hints, &found);
  if (error != 0)
    throw UserError(
        fmt::format("train: MASTER_ADDR is '{}', expected the name or IP address of process 0's "
                    "machine ({}); set it to one that all machines know",
                    point.address, ::gai_strerror(error)));
  return {found, &::freeaddrinfo};
}

/// A socket that listens at the meeting point and nowhere else. c10d's own would listen on all
/// networks of the machine.
int listen_at(const MeetingPoint& point) {
  const Addresses addresses = addresses_of(point);
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    const int yes = 1;
    if (socket >= 0) ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket >= 0 && ::bind(socket, at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket, SOMAXCONN) == 0)
      return socket;
    error = errno;
    if (socket >= 0) ::close(socket);
  }
  throw UserError(fmt::format(
      "train: process 0 cannot listen at {} ({}), expected an address of its own machine and a "
      "free port; set MASTER_ADDR and MASTER_PORT to such, for all processes",
      name_of(point), std::strerror(error)));
}

/// The address of this machine from which it reaches the meeting point. Nothing is sent.
std::string own_address(const MeetingPoint& point) {
  const Addresses addresses = addresses_of(point);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int socket = ::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    auto* const name = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = {};
    const bool told = ::connect(socket, at->ai_addr, at->ai_addrlen) == 0 &&
                      ::getsockname(socket, name, &size) == 0 &&
                      ::getnameinfo(name, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (told) return text;
  }
  throw UserError(
      fmt::format("train: no network of this machine leads to {} ({}), expected one; set "
                  "MASTER_ADDR to an address of process 0's machine that all machines reach",
                  name_of(point), std::strerror(errno)));
}

/// Runs what c10d may never return from: it waits without a limit for an answer of a stranger that
/// listens and says nothing. The thread is left behind then.
/// @returns  whether it came to an end in time.
/// @throws   what it throws.
bool ends_within(double seconds, std::function<void()> function) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  std::thread([done, function = std::move(function)] {
    try {
      function();
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  }).detach();
  if (ended.wait_for(Waiting::milliseconds_of(seconds)) != std::future_status::ready) return false;
  ended.get();
  return true;
}

[[noreturn]] void refuse_meeting(const ProcessPlace& place, const MeetingPoint& point,
                                 double timeout, const std::string& found) {
  throw UserError(fmt::format(
      "train: process {} of {} found {} at {} within {} s, expected {}; start all processes with "
      "the same MASTER_ADDR, one that process 0's machine has, and the same MASTER_PORT",
      place.rank, place.world_size, found, name_of(point), timeout,
      point.held ? "torchrun" : "process 0 to listen there"));
}

/// Says that this process is there, and waits for the others. How many there are is process 0's to
/// say, so that one of another training disturbs nobody.
void check_in(c10d::Store& store, const ProcessPlace& place, const MeetingPoint& point,
              double timeout) {
  const auto key = [](int64_t rank) { return fmt::format("here/{}", rank); };
  const std::string count = std::to_string(place.world_size);
  const Waiting waiting(patience_of(place, timeout));
  const auto wait_for = [&](const std::string& said, int64_t other) {
    try {
      store.wait({said}, waiting.left());
    } catch (const std::exception&) {
      throw UserError(fmt::format(
          "train: process {} of {} did not come to {} within {} s, expected all of them there; "
          "look at what it printed, and start all with the same MASTER_ADDR and MASTER_PORT",
          other, count, name_of(point), timeout));
    }
  };
  if (place.rank != 0) {
    wait_for("count", 0);
    const std::vector<uint8_t> bytes = store.get("count");
    if (const std::string said(bytes.begin(), bytes.end()); said != count)
      throw UserError(fmt::format(
          "train: process {} was told of {} processes, process 0 at {} of {}, expected the same "
          "number; set WORLD_SIZE alike, or another MASTER_PORT if that belongs to another "
          "training",
          place.rank, count, name_of(point), said));
  }
  if (store.add(key(place.rank), 1) != 1)
    throw UserError(fmt::format(
        "train: process {} of {} has come to {} before, expected each one once; give every process "
        "a RANK of its own, or another MASTER_PORT if that belongs to another training",
        place.rank, count, name_of(point)));
  if (place.rank == 0) store.set("count", std::vector<uint8_t>(count.begin(), count.end()));
  for (int64_t other = 0; other < place.world_size; ++other) wait_for(key(other), other);
}

}  // namespace

Rendezvous meet(const ProcessPlace& place, const MeetingPoint& point, double timeout) {
  FLAGS_caffe2_log_level = 3;  // c10d's warnings name its own files; what went wrong is said below
  const double patience = patience_of(place, timeout);
  c10d::TCPStoreOptions options;
  options.port = point.port;
  options.isServer = place.rank == 0 && !point.held;
  options.waitWorkers = false;
  options.timeout = Waiting::milliseconds_of(patience);
  if (options.isServer) options.masterListenFd = listen_at(point);
  Rendezvous met;
  met.own_address = own_address(point);
  const auto store = std::make_shared<c10::intrusive_ptr<c10d::Store>>();
  try {
    // Some seconds more than c10d itself takes to give up.
    const bool found = ends_within(patience + 5, [store, options, point] {
      const auto tcp = c10::make_intrusive<c10d::TCPStore>(point.address, options);
      *store = c10::make_intrusive<c10d::PrefixStore>("medusa/" + point.attempt, tcp);
    });
    const bool told = found && ends_within(2 * patience + 5, [store, place, point, timeout] {
                        check_in(**store, place, point, timeout);
                      });
    if (!told) refuse_meeting(place, point, timeout, "somebody who does not answer");
  } catch (const c10::Error&) {
    refuse_meeting(place, point, timeout, "nobody, or a stranger");
  }
  met.store = *store;
  return met;
}

void say_farewell(const Rendezvous& met, int64_t count) noexcept {
  try {
    if (met.store->add("farewell", 1) == count) met.store->set("all gone", std::vector<uint8_t>{1});
    met.store->wait({"all gone"});
  } catch (const std::exception&) {
    // The one that holds the store has gone: it left after everybody else had said farewell.
  }
}

}  // namespace medusa
