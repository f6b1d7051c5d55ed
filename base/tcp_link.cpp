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
constexpr size_t kMostGuests = 256;  // that have not said who they are; then the oldest goes

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

/// The first IPv4 address of a name. @returns why there is none, else null.
const char* look_up(const std::string& host, int64_t port, sockaddr_in& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0) return ::gai_strerror(error);
  std::memcpy(&address, found->ai_addr, sizeof address);
  ::freeaddrinfo(found);
  return nullptr;
}

/// Until the other side answers, or Ctrl-C is pressed: there is no step yet to finish.
bool wait_for_answer(int socket, Deadline deadline) {
  while (!interrupted() && Clock::now() < deadline)
    if (wait_for(socket, POLLOUT, std::min(deadline, Clock::now() + kSlice))) return true;
  return false;
}

/// One attempt. @returns -1 if nobody listens, or answers in time.
int try_to_connect(const std::string& host, int64_t port, Deadline deadline) {
  sockaddr_in address{};
  if (look_up(host, port, address) != nullptr) return -1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket >= 0) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return socket;
    // A host that drops packets would hold a blocking call for minutes.
    if (errno == EINPROGRESS && wait_for_answer(socket, deadline) &&
        ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
      return socket;
  }
  if (socket >= 0) ::close(socket);
  return -1;
}

[[noreturn]] void fail_to_listen(const std::string& host, int64_t port, const std::string& why) {
  throw UserError(fmt::format(
      "the network: cannot listen at {}{} ({}), expected an address of this machine and a free "
      "port there; set MASTER_ADDR and MASTER_PORT to such ones, or start a single process",
      host, port == 0 ? "" : fmt::format(":{}", port), why));
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

TcpListener::TcpListener(const std::string& host, int64_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  const char* unknown = look_up(host, port, address);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;  // a run that has just ended leaves its port in TIME_WAIT
  if (socket_ >= 0) ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = unknown == nullptr && socket_ >= 0 && ::bind(socket_, general, size) == 0 &&
                       ::listen(socket_, SOMAXCONN) == 0 &&
                       ::getsockname(socket_, general, &size) == 0;
  if (!listens) {
    const std::string why = unknown != nullptr ? unknown : std::strerror(errno);
    if (socket_ >= 0) ::close(socket_);
    fail_to_listen(host, port, why);
  }
  port_ = ntohs(address.sin_port);
  char numbers[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address.sin_addr, numbers, sizeof numbers);
  address_ = numbers;
}

TcpListener::~TcpListener() {
  if (socket_ >= 0) ::close(socket_);
}

void TcpListener::wait_for_guests(Deadline deadline) const {
  std::vector<pollfd> watched{{socket_, POLLIN, 0}};
  for (const Guest& guest : guests_) watched.push_back({guest.link.socket_, POLLIN, 0});
  ::poll(watched.data(), watched.size(), remaining_ms(deadline));
}

void TcpListener::let_in(milliseconds handshake) {
  pollfd watched{socket_, POLLIN, 0};
  if (::poll(&watched, 1, 0) <= 0) return;
  const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  if (guests_.size() == kMostGuests) guests_.erase(guests_.begin());
  guests_.push_back({TcpLink(socket), {}, Clock::now() + handshake});
}

Transfer TcpListener::listen_to(Guest& guest, size_t size) {
  while (guest.said.size() < size) {
    uint8_t bytes[256];
    const size_t missing = std::min(sizeof bytes, size - guest.said.size());
    const ssize_t n = ::recv(guest.link.socket_, bytes, missing, 0);
    if (n > 0) {
      guest.said.insert(guest.said.end(), bytes, bytes + n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return Clock::now() < guest.until ? Transfer::TimedOut : Transfer::Closed;
    } else if (n == 0 || errno != EINTR) {
      return Transfer::Closed;
    }
  }
  return Transfer::Done;
}

std::optional<TcpLink> TcpListener::accept(std::span<uint8_t> first, Deadline deadline,
                                           milliseconds handshake) {
  while (!interrupted() && Clock::now() < deadline) {
    wait_for_guests(std::min(deadline, Clock::now() + kSlice));
    let_in(handshake);
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const Transfer how = listen_to(*guest, first.size());
      if (how == Transfer::Done) {
        std::copy(guest->said.begin(), guest->said.end(), first.begin());
        TcpLink link = std::move(guest->link);
        guests_.erase(guest);
        return link;
      }
      guest = how == Transfer::Closed ? guests_.erase(guest) : guest + 1;
    }
  }
  return std::nullopt;
}

std::optional<TcpLink> connect_to(const std::string& host, int64_t port, Deadline deadline) {
  while (!interrupted()) {
    if (const int socket = try_to_connect(host, port, deadline); socket >= 0)
      return TcpLink(socket);
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kSlice);
  }
  return std::nullopt;
}

}  // namespace medusa
