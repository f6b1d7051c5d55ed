#include "base/tcp_link.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace medusa {
namespace {

using std::chrono::milliseconds;

Deadline in_ms(int64_t ms) { return std::chrono::steady_clock::now() + milliseconds(ms); }

/// Two ends of one connection.
struct LinkPair {
  LinkPair() {
    TcpListener listener(/*this_machine_only=*/true);
    auto connected = connect_to("127.0.0.1", listener.port(), in_ms(5000));
    auto accepted = listener.accept(in_ms(5000));
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
  TcpListener listener(/*this_machine_only=*/true);
  EXPECT_FALSE(listener.accept(in_ms(50)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(5000));
}

TEST(TcpLink, TriesUntilSomebodyListens) {
  EXPECT_FALSE(connect_to("127.0.0.1", 1, in_ms(10)));
  EXPECT_FALSE(connect_to("no such host", 1, in_ms(10)));
}

}  // namespace
}  // namespace medusa
