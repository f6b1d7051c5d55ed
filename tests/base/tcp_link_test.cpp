#include "base/tcp_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

using std::chrono::milliseconds;

Deadline in_ms(int64_t ms) { return std::chrono::steady_clock::now() + milliseconds(ms); }

/// Two ends of one connection.
struct LinkPair {
  LinkPair() {
    TcpListener listener("127.0.0.1");
    auto connected = connect_to("127.0.0.1", listener.port(), in_ms(5000));
    auto accepted = listener.accept({}, in_ms(5000));
    if (connected) near.emplace(std::move(*connected));
    if (accepted) far.emplace(std::move(*accepted));
  }
  std::optional<TcpLink> near, far;
};

TEST(TcpLink, CarriesMoreThanTheSystemBuffers) {
  LinkPair pair;
  ASSERT_TRUE(pair.near && pair.far);
  std::vector<uint8_t> sent(20'000'000), received(sent.size());
  std::iota(sent.begin(), sent.end(), uint8_t{0});
  Transfer far_side = Transfer::Closed;
  std::thread other([&] { far_side = pair.far->receive(received, in_ms(20000)); });
  EXPECT_EQ(pair.near->send(sent, in_ms(20000)), Transfer::Done);
  other.join();
  EXPECT_EQ(far_side, Transfer::Done);
  EXPECT_EQ(received, sent);
}

TEST(TcpLink, SaysWhenTheOtherSideIsGone) {
  LinkPair pair;
  ASSERT_TRUE(pair.near && pair.far);
  std::vector<uint8_t> bytes(10);
  pair.far.reset();
  EXPECT_EQ(pair.near->receive(bytes, in_ms(20000)), Transfer::Closed);
  // The first bytes may still leave; no signal ends the process.
  for (int i = 0; i < 100 && pair.near->send(bytes, in_ms(1000)) == Transfer::Done; ++i)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(pair.near->send(bytes, in_ms(1000)), Transfer::Closed);
}

TEST(TcpLink, WaitsNoLongerThanItIsTold) {
  LinkPair pair;
  ASSERT_TRUE(pair.near && pair.far);
  std::vector<uint8_t> few(4), many(50'000'000);
  ASSERT_EQ(pair.far->send(few, in_ms(1000)), Transfer::Done);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(pair.near->receive(std::span(many).first(5), in_ms(50)), Transfer::TimedOut);
  EXPECT_EQ(pair.near->send(many, in_ms(50)), Transfer::TimedOut);
  TcpListener listener("127.0.0.1");
  EXPECT_FALSE(listener.accept({}, in_ms(50)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(5000));
}

TEST(TcpListener, ListensAtItsAddressAlone) {
  TcpListener listener("127.0.0.2");
  EXPECT_EQ(listener.address(), "127.0.0.2");
  EXPECT_FALSE(connect_to("127.0.0.1", listener.port(), in_ms(10)));
  EXPECT_TRUE(connect_to("127.0.0.2", listener.port(), in_ms(10)));
  EXPECT_EQ(TcpListener("localhost").address(), "127.0.0.1");
}

TEST(TcpListener, SaysWhereItCannotListen) {
  const std::string rest =
      ", expected an address of this machine and a free port there; set MASTER_ADDR and "
      "MASTER_PORT to such ones, or start a single process";
  const TcpListener taken("127.0.0.1");
  EXPECT_EQ(fixtures::error_text([&] { TcpListener("127.0.0.1", taken.port()); }),
            "the network: cannot listen at 127.0.0.1:" + std::to_string(taken.port()) +
                " (Address already in use)" + rest);
  EXPECT_EQ(fixtures::error_text([] { TcpListener("192.0.2.1"); }),
            "the network: cannot listen at 192.0.2.1 (Cannot assign requested address)" + rest);
  EXPECT_EQ(
      fixtures::error_text([] { TcpListener("no such host"); }).rfind("the network: cannot", 0),
      0U);
}

void say(TcpLink& link, const std::vector<uint8_t>& bytes) {
  EXPECT_EQ(link.send(bytes, in_ms(5000)), Transfer::Done);
}

TEST(TcpListener, SilentConnectionsHoldUpNobodyAndAreDropped) {
  TcpListener listener("127.0.0.1");
  const auto connect = [&] { return connect_to("127.0.0.1", listener.port(), in_ms(5000)); };
  auto silent = connect(), slow = connect();
  ASSERT_TRUE(silent && slow);
  say(*slow, {1, 2});
  auto gone = connect();
  ASSERT_TRUE(gone);
  say(*gone, {9});
  gone.reset();
  auto talker = connect();
  ASSERT_TRUE(talker);
  say(*talker, {5, 6, 7});

  std::vector<uint8_t> first(3);
  EXPECT_TRUE(listener.accept(first, in_ms(60000)));
  EXPECT_EQ(first, (std::vector<uint8_t>{5, 6, 7}));
  say(*slow, {3});
  EXPECT_TRUE(listener.accept(first, in_ms(60000)));
  EXPECT_EQ(first, (std::vector<uint8_t>{1, 2, 3}));

  auto late = connect();
  ASSERT_TRUE(late);
  std::thread waiting([&] {
    std::vector<uint8_t> last(3);
    EXPECT_TRUE(listener.accept(last, in_ms(60000), milliseconds(50)));
    EXPECT_EQ(last, (std::vector<uint8_t>{8, 8, 8}));
  });
  std::vector<uint8_t> nothing(1);
  EXPECT_EQ(late->receive(nothing, in_ms(30000)), Transfer::Closed) << "dropped in time";
  auto last = connect();
  if (last) say(*last, {8, 8, 8});
  waiting.join();
}

TEST(TcpListener, AFloodOfSilentConnectionsDoesNotKeepTheNextOneOut) {
  TcpListener listener("127.0.0.1");
  std::vector<TcpLink> silent;
  std::vector<uint8_t> first(1);
  for (int i = 0; i < 300; ++i) {
    auto link = connect_to("127.0.0.1", listener.port(), in_ms(5000));
    ASSERT_TRUE(link);
    silent.push_back(std::move(*link));
    if (i % 50 == 0) {
      EXPECT_FALSE(listener.accept(first, in_ms(1)));
    }
  }
  auto talker = connect_to("127.0.0.1", listener.port(), in_ms(5000));
  ASSERT_TRUE(talker);
  say(*talker, {7});
  EXPECT_TRUE(listener.accept(first, in_ms(60000)));
  EXPECT_EQ(first[0], 7);
}

/// Takes no connection: its queue is full, so the system drops whoever knocks.
class FullHost {
 public:
  FullHost() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* general = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, general, size), 0);
    EXPECT_EQ(::listen(socket_, 0), 0);
    EXPECT_EQ(::getsockname(socket_, general, &size), 0);
    port_ = ntohs(address.sin_port);
    while (auto guest = connect_to("127.0.0.1", port_, in_ms(300)))
      guests_.push_back(std::move(*guest));
  }
  ~FullHost() { ::close(socket_); }
  FullHost(const FullHost&) = delete;
  FullHost& operator=(const FullHost&) = delete;
  int64_t port() const { return port_; }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  int64_t port_ = 0;
  std::vector<TcpLink> guests_;
};

TEST(TcpLink, AHostThatDropsPacketsIsWaitedForUntilTheDeadlineOrASignal) {
  const FullHost host;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(connect_to("127.0.0.1", host.port(), in_ms(50)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(5000));
  const auto interrupted_while_connecting = [&] {
    install_interrupt_handler();
    ::alarm(30);  // ends this process of its own, if the first signal does not
    std::thread([] {
      std::this_thread::sleep_for(milliseconds(300));
      ::kill(::getpid(), SIGTERM);
    }).detach();
    _exit(connect_to("127.0.0.1", host.port(), in_ms(60000)) ? 1 : 0);
  };
  EXPECT_EXIT(interrupted_while_connecting(), testing::ExitedWithCode(0), "");
}

TEST(TcpLink, TriesUntilSomebodyListens) {
  EXPECT_FALSE(connect_to("127.0.0.1", 1, in_ms(10)));
  EXPECT_FALSE(connect_to("no such host", 1, in_ms(10)));
}

}  // namespace
}  // namespace medusa
