// How processes find each other without MPI, and who does not belong there.
#include "train/processes/rendezvous.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "tests/base/error_text.h"
#include "tests/base/free_port.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::free_port;

ProcessPlace place_of(int64_t rank, int64_t count = 2) {
  ProcessPlace place;
  place.launcher = Launcher::Torchrun;
  place.rank = place.local_rank = rank;
  place.world_size = count;
  return place;
}

MeetingPoint point_at(int port) {
  MeetingPoint point;
  point.address = "127.0.0.1";
  point.port = static_cast<uint16_t>(port);
  point.attempt = "0";
  return point;
}

/// Somebody else's socket, who does something with each connection.
class Stranger {
 public:
  explicit Stranger(std::function<void(int)> answer)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)), port_(free_port()), answer_(std::move(answer)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(port_));
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::listen(socket_, 5), 0);
    thread_ = std::thread([this] {
      for (int one; (one = ::accept(socket_, nullptr, nullptr)) >= 0;) answer_(one);
    });
  }
  ~Stranger() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  int port() const { return port_; }

 private:
  int socket_, port_;
  std::function<void(int)> answer_;
  std::thread thread_;
};

std::string found(const std::string& who, int port, const char* expected) {
  return "train: process 1 of 2 found " + who + " at 127.0.0.1:" + std::to_string(port) +
         " within 1 s, expected " + expected +
         "; start all processes with the same MASTER_ADDR, one that process 0's machine has, and "
         "the same MASTER_PORT";
}

TEST(Rendezvous, SaysThatNobodyListens) {
  const int port = free_port();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(error_text([&] { meet(place_of(1), point_at(port), 1); }),
            found("nobody, or a stranger", port, "process 0 to listen there"));
  MeetingPoint of_torchrun = point_at(port);
  of_torchrun.held = true;
  EXPECT_EQ(error_text([&] { meet(place_of(1), of_torchrun, 1); }),
            found("nobody, or a stranger", port, "torchrun"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST(Rendezvous, WaitsForNoStranger) {
  const auto began = std::chrono::steady_clock::now();
  const Stranger silent([](int) {});
  EXPECT_EQ(error_text([&] { meet(place_of(1), point_at(silent.port()), 1); }),
            found("somebody who does not answer", silent.port(), "process 0 to listen there"));
  const Stranger talks([](int one) {
    const std::string words = "HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(1000, 'x');
    EXPECT_GT(::send(one, words.data(), words.size(), MSG_NOSIGNAL), 0);
    ::close(one);
  });
  const std::string said = error_text([&] { meet(place_of(1), point_at(talks.port()), 1); });
  EXPECT_TRUE(said.starts_with("train: process 1 of 2 ")) << said;
  EXPECT_NE(said.find(", expected "), std::string::npos) << said;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST(Rendezvous, SaysThatProcess0CannotListen) {
  const Stranger there([](int) {});
  EXPECT_EQ(error_text([&] { meet(place_of(0), point_at(there.port()), 1); }),
            "train: process 0 cannot listen at 127.0.0.1:" + std::to_string(there.port()) +
                " (Address already in use), expected an address of its own machine and a free "
                "port; set MASTER_ADDR and MASTER_PORT to such, for all processes");
  MeetingPoint elsewhere = point_at(29500);
  elsewhere.address = "192.0.2.1";  // of documentation alone (RFC 5737)
  EXPECT_EQ(error_text([&] { meet(place_of(0), elsewhere, 1); }),
            "train: process 0 cannot listen at 192.0.2.1:29500 (Cannot assign requested address), "
            "expected an address of its own machine and a free port; set MASTER_ADDR and "
            "MASTER_PORT to such, for all processes");
}

/// The addresses at which somebody listens on the port, as the system writes them.
std::vector<std::string> listeners(int port) {
  std::vector<std::string> addresses;
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string number, own, other, state;
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      words >> number >> own >> other >> state;
      if (state == "0A" && own.ends_with(wanted)) addresses.push_back(own);
    }
  }
  return addresses;
}

TEST(Rendezvous, ListensAtTheNamedAddressAlone) {
  const int port = free_port();
  auto first =
      std::async(std::launch::async, [&] { return meet(place_of(0), point_at(port), 20); });
  std::vector<std::string> seen;
  for (int i = 0; i < 5000 && seen.empty(); ++i) {
    seen = listeners(port);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(seen[0].starts_with("0100007F:")) << seen[0];
  const Rendezvous second = meet(place_of(1), point_at(port), 20);
  EXPECT_EQ(second.own_address, "127.0.0.1");
  EXPECT_EQ(first.get().own_address, "127.0.0.1");
}

TEST(Rendezvous, SaysWhoDidNotCome) {
  const int port = free_port();
  EXPECT_EQ(error_text([&] { meet(place_of(0), point_at(port), 1); }),
            "train: process 1 of 2 did not come to 127.0.0.1:" + std::to_string(port) +
                " within 1 s, expected all of them there; look at what it printed, and start all "
                "with the same MASTER_ADDR and MASTER_PORT");
}

TEST(Rendezvous, ProcessesOfAnotherTrainingAreRefused) {
  const int port = free_port();
  const std::string at = "127.0.0.1:" + std::to_string(port);
  auto first =
      std::async(std::launch::async, [&] { return meet(place_of(0), point_at(port), 20); });
  EXPECT_EQ(error_text([&] { meet(place_of(1, 3), point_at(port), 5); }),
            "train: process 1 was told of 3 processes, process 0 at " + at +
                " of 2, expected the same number; set WORLD_SIZE alike, or another MASTER_PORT if "
                "that belongs to another training");
  meet(place_of(1), point_at(port), 20);
  first.wait();
  EXPECT_EQ(error_text([&] { meet(place_of(1), point_at(port), 5); }),
            "train: process 1 of 2 has come to " + at +
                " before, expected each one once; give every process a RANK of its own, or another "
                "MASTER_PORT if that belongs to another training");
}

/// torchrun holds one store for all of its attempts.
TEST(Rendezvous, MeetsAtTorchrunsOwnStore) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  MeetingPoint point = point_at(agent->getPort());
  point.held = true;
  for (const char* attempt : {"0", "1"}) {
    point.attempt = attempt;
    auto first = std::async(std::launch::async, [&] {
      const Rendezvous met = meet(place_of(0), point, 20);
      say_farewell(met, 2);
      return met;
    });
    const Rendezvous second = meet(place_of(1), point, 20);
    say_farewell(second, 2);
    EXPECT_EQ(first.get().own_address, second.own_address);
  }
}

}  // namespace
}  // namespace medusa
