// A port for a test to listen on.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace medusa::fixtures {

/// A port of the loopback where nobody listens now.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const at = reinterpret_cast<sockaddr*>(&name);
  EXPECT_EQ(::bind(socket, at, size), 0);
  EXPECT_EQ(::getsockname(socket, at, &size), 0);
  ::close(socket);
  return ntohs(name.sin_port);
}

}  // namespace medusa::fixtures
