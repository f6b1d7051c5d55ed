// A TCP connection between two of our processes: whole blocks of bytes, each within a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace medusa {

using Deadline = std::chrono::steady_clock::time_point;

/// How a transfer ended.
enum class Transfer {
  Done,
  Closed,   // the other side closed the connection or the network broke it
  TimedOut  // some bytes are missing at the deadline
};

/// One connection. After a transfer that was not Done it is of no further use.
///
/// Thread safety: none.
class TcpLink {
 public:
  explicit TcpLink(int socket);  // owned
  TcpLink(TcpLink&& other) noexcept;
  TcpLink& operator=(TcpLink&& other) noexcept;
  ~TcpLink();

  Transfer send(std::span<const uint8_t> bytes, Deadline deadline);
  Transfer receive(std::span<uint8_t> bytes, Deadline deadline);

 private:
  int socket_;
};

/// Waits for connections.
class TcpListener {
 public:
  /// @param this_machine_only  connections from other machines are not possible.
  /// @param port               0: any that is free.
  /// @throws UserError  the system does not give the port.
  explicit TcpListener(bool this_machine_only, int64_t port = 0);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  ~TcpListener();

  int64_t port() const { return port_; }

  /// Hands the socket over; the listener is of no further use.
  int release() { return std::exchange(socket_, -1); }

  /// The next connection; nothing if none came until the deadline or Ctrl-C was pressed.
  std::optional<TcpLink> accept(Deadline deadline);

 private:
  int socket_;
  int64_t port_ = 0;
};

/// Tries again until the deadline, as the other side may not listen yet.
/// @param host  a name or an IPv4 address.
/// @returns     nothing if it never listened, or Ctrl-C was pressed.
std::optional<TcpLink> connect_to(const std::string& host, int64_t port, Deadline deadline);

}  // namespace medusa
