#include "base/tcp_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{200};  // between two looks at Ctrl-C

int remaining_ms(Deadline deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

/// Until the socket is ready; a closed one is.
bool wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    pollfd watched{socket, events, 0};
    const int ready = ::poll(&watched, 1, remaining_ms(deadline));
    if (ready > 0) return true;
    // A signal: the transfer is part of a step, which is finished before the run ends.
    if (ready == 0 || errno != EINTR) return false;
  }
}

void set_up(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // small sums go at once
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

/// One attempt. @returns -1 if nobody listens.
int try_to_connect(const std::string& host, int64_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return -1;
  const int socket = ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
  const bool connected = socket >= 0 && ::connect(socket, found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (connected) return socket;
  if (socket >= 0) ::close(socket);
  return -1;
}

}  // namespace

TcpLink::TcpLink(int socket) : socket_(socket) { set_up(socket_); }
TcpLink::TcpLink(TcpLink&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
TcpLink& TcpLink::operator=(TcpLink&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}
TcpLink::~TcpLink() {
  if (socket_ >= 0) ::close(socket_);
}

Transfer TcpLink::send(std::span<const uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket_, POLLOUT, deadline)) return Transfer::TimedOut;
    } else if (errno != EINTR) {
      return Transfer::Closed;
    }
  }
  return Transfer::Done;
}

Transfer TcpLink::receive(std::span<uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (n == 0) {
      return Transfer::Closed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket_, POLLIN, deadline)) return Transfer::TimedOut;
    } else if (errno != EINTR) {
      return Transfer::Closed;
    }
  }
  return Transfer::Done;
}

TcpListener::TcpListener(bool this_machine_only, int64_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(this_machine_only ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;  // a run that has just ended leaves its port in TIME_WAIT
  if (socket_ >= 0) ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = socket_ >= 0 && ::bind(socket_, general, size) == 0 &&
                       ::listen(socket_, SOMAXCONN) == 0 &&
                       ::getsockname(socket_, general, &size) == 0;
  if (!listens) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0) ::close(socket_);
    throw UserError(fmt::format(
        "the network: found no port to listen on ({}), expected a free one; allow the process to "
        "open one, or start a single process",
        why));
  }
  port_ = ntohs(address.sin_port);
}

TcpListener::~TcpListener() {
  if (socket_ >= 0) ::close(socket_);
}

std::optional<TcpLink> TcpListener::accept(Deadline deadline) {
  while (!interrupted() && Clock::now() < deadline) {
    if (!wait_for(socket_, POLLIN, std::min(deadline, Clock::now() + kSlice))) continue;
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) return TcpLink(socket);
  }
  return std::nullopt;
}

std::optional<TcpLink> connect_to(const std::string& host, int64_t port, Deadline deadline) {
  while (!interrupted()) {
    if (const int socket = try_to_connect(host, port); socket >= 0) return TcpLink(socket);
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kSlice);
  }
  return std::nullopt;
}

}  // namespace medusa
