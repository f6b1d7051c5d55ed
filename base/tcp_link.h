// A TCP connection between two of our processes: whole blocks of bytes, each within a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  friend class TcpListener;
  int socket_;
};

/// Within what time one that connects has to say who it is.
inline constexpr std::chrono::milliseconds kHandshakeTime{5000};

/// Waits for connections at one address of this machine.
class TcpListener {
 public:
  /// @param host  a name or an IPv4 address. At the machine's other addresses nobody listens.
  /// @param port  0: any that is free.
  /// @throws UserError  the address is not this machine's, or the system does not give the port.
  explicit TcpListener(const std::string& host, int64_t port = 0);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  ~TcpListener();

  int64_t port() const { return port_; }
  const std::string& address() const { return address_; }  // of the host, "127.0.0.1"

  /// Hands the socket over; the listener is of no further use.
  int release() { return std::exchange(socket_, -1); }

  /// The next connection that has said who it is. Those that keep silent hold up nobody, and are
  /// dropped in time.
  /// @param first      filled with its first bytes.
  /// @param handshake  within which they have to come.
  /// @returns          nothing if none came until the deadline or Ctrl-C was pressed.
  std::optional<TcpLink> accept(std::span<uint8_t> first, Deadline deadline,
                                std::chrono::milliseconds handshake = kHandshakeTime);

 private:
  /// One that has connected.
  struct Guest {
    TcpLink link;
    std::vector<uint8_t> said;  // so far
    Deadline until;             // then it has to have said all
  };
  void wait_for_guests(Deadline deadline) const;
  void let_in(std::chrono::milliseconds handshake);
  /// @returns Done once it has said as much, TimedOut while more may come.
  static Transfer listen_to(Guest& guest, size_t size);

  int socket_;
  int64_t port_ = 0;
  std::string address_;
  std::vector<Guest> guests_;  // oldest first
};

/// Tries again until the deadline, as the other side may not listen yet.
/// @param host  a name or an IPv4 address.
/// @returns     nothing if it never listened, or Ctrl-C was pressed.
std::optional<TcpLink> connect_to(const std::string& host, int64_t port, Deadline deadline);

}  // namespace medusa
