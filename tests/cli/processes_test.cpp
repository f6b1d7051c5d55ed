// medusa train in two processes, as mpirun and torchrun start them, on this machine's loopback.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/folder_lock.h"
#include "base/tcp_link.h"
#include "program.h"

namespace medusa::cli {
namespace {

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

struct BothRan {
  Ran first, second;
};

/// Both at once.
BothRan run_both(const Workplace& place, const std::string& arguments) {
  const int port = free_port();
  const auto run = [&](int rank) {
    return place.run_as(
        "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=" +
            std::to_string(rank) + " MASTER_PORT=" + std::to_string(port) + " ",
        arguments, std::to_string(rank));
  };
  auto second = std::async(std::launch::async, [&] { return run(1); });
  Ran first = run(0);
  return {std::move(first), second.get()};
}

class Processes : public DistilledRun {};

TEST_F(Processes, TrainTheHeadsOfOneWithTwiceTheBatch) {
  const auto [first, second] = run_both(
      place_, "train --config run.yaml --json --dtype float32 --set train.batch_positions=32");
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, "");
  for (const char* word : {"train", "validate", "report", "heads"})
    EXPECT_EQ(second.err.find(word), std::string::npos) << second.err;
  const auto together = nlohmann::json::parse(first.out);
  EXPECT_EQ(together.at("complete"), true);

  const Ran ran = place_.run(
      "train --config run.yaml --json --dtype float32 --set run=runs/alone --set "
      "train.data='[runs/tiny/dataset]'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto alone = nlohmann::json::parse(ran.out);
  EXPECT_EQ(together.at("steps"), alone.at("steps"));
  EXPECT_EQ(together.at("positions"), alone.at("positions"));
  const double loss = alone.at("loss");
  EXPECT_NEAR(together.at("loss"), loss, 1e-6 * loss);

  const Ran inspected = place_.run("inspect runs/tiny/heads");
  EXPECT_NE(inspected.out.find("# 2 processes, each with train.batch_positions"), std::string::npos)
      << inspected.out;
}

TEST_F(Processes, TrainBackboneAndHeadsOfOneThatAccumulatesTwiceAsMuch) {
  const std::string joint =
      "train --config run.yaml --json --dtype float32 --set train.stages='[heads, joint]' --set "
      "train.joint.batch_tokens=100 --set train.joint.guard.samples=2 --set "
      "train.joint.guard.greedy_tokens=8 --set train.joint.lora.rank=4 ";
  const auto [first, second] = run_both(place_, joint + "--set train.batch_positions=32");
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, "");
  for (const char* word : {"train", "validate", "report", "joint", "model"})
    EXPECT_EQ(second.err.find(word), std::string::npos) << second.err;
  const auto together = nlohmann::json::parse(first.out).at("joint");
  EXPECT_EQ(together.at("complete"), true);

  const Ran ran = place_.run(joint +
                             "--set train.joint.accumulate=2 --set run=runs/alone --set "
                             "train.data='[runs/tiny/dataset]'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto alone = nlohmann::json::parse(ran.out).at("joint");
  for (const char* same : {"steps", "positions"}) EXPECT_EQ(together.at(same), alone.at(same));
  EXPECT_GT(alone.at("peak_bytes"), 1'000'000) << "of this stage";
  const double loss = alone.at("loss"), drift = alone.at("guard_kl_nats");
  EXPECT_NEAR(together.at("loss"), loss, 1e-6 * loss);
  EXPECT_NEAR(together.at("guard_kl_nats"), drift, 1e-3 * drift) << "itself near nothing";
  const Ran inspected = place_.run("inspect runs/tiny/joint/heads");
  EXPECT_NE(inspected.out.find("# 2 processes, each with train.joint.accumulate"),
            std::string::npos)
      << inspected.out;
}

TEST_F(Processes, AllEndWhereAnotherCommandWrites) {
  const FolderLock other(place_ / "runs/tiny", "medusa distill");
  const auto [first, second] = run_both(place_, "train --config run.yaml");
  EXPECT_EQ(first.status, 2);
  EXPECT_NE(first.err.find("medusa: runs/tiny: medusa distill (process "), std::string::npos)
      << first.err;
  EXPECT_EQ(second.status, 2);
  EXPECT_NE(second.err.find("process 0"), std::string::npos) << second.err;
}

/// Takes every connection, and says the same to all.
class Stranger {
 public:
  explicit Stranger(const std::string& words) : words_(words), thread_([this] { answer(); }) {}
  ~Stranger() {
    over_ = true;
    thread_.join();
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  std::string port() const { return std::to_string(listener_.port()); }

 private:
  static Deadline in_ms(int ms) {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  }
  void answer() {
    std::vector<TcpLink> links;
    while (!over_) {
      auto link = listener_.accept({}, in_ms(50));
      if (!link) continue;
      link->send({reinterpret_cast<const uint8_t*>(words_.data()), words_.size()}, in_ms(1000));
      links.push_back(std::move(*link));
    }
  }

  std::string words_;
  TcpListener listener_{"127.0.0.1"};
  std::atomic<bool> over_ = false;
  std::thread thread_;  // last: it uses the others
};

TEST_F(Processes, AStrangerInThePlaceOfTheFirstIsToldInOneMessage) {
  const Stranger stranger("HTTP/1.1 400 Bad Request\r\n\r\n");
  const Ran ran = place_.run_as("RANK=1 WORLD_SIZE=2 MASTER_PORT=" + stranger.port() + " ",
                                "train --config run.yaml --set train.peer_timeout_s=0.5");
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.err.starts_with("medusa: train: process 1 of 2 asked for the others at "))
      << ran.err;
}

TEST_F(Processes, ASignalEndsTheWaitingForOthers) {
  const Stranger silent("");
  const auto ended = [&](const std::string& rank, const std::string& port) {
    return place_.run_as("RANK=" + rank + " WORLD_SIZE=2 MASTER_PORT=" + port +
                             " timeout --preserve-status --kill-after=10 2 ",
                         "train --config run.yaml");
  };
  for (const Ran& ran : {ended("1", silent.port()), ended("0", std::to_string(free_port()))}) {
    EXPECT_EQ(ran.status, 130);
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(Processes, WhatCannotWorkIsTheUsersError) {
  const auto error = [&](const std::string& arguments) {
    const Ran ran = place_.run_as("RANK=0 WORLD_SIZE=2 ", "train --config run.yaml " + arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    return ran.err;
  };
  EXPECT_EQ(error("--dry-run"),
            "medusa: train: --dry-run was given to 2 processes, expected one; start it without "
            "torchrun, mpirun or srun, it tells what each process takes\n");
  EXPECT_EQ(error("--set train.peer_timeout_s=0.3"),
            "medusa: train: 1 of 2 processes came within 0.3 s, expected all of them; look at what "
            "the others printed, and start them all again (train.peer_timeout_s is how long to "
            "wait)\n");
  const Ran port = place_.run_as("RANK=0 WORLD_SIZE=2 MASTER_PORT=70000 ",
                                 "train --config run.yaml --set train.peer_timeout_s=0.3");
  EXPECT_EQ(port.status, 2) << port.err;
  EXPECT_EQ(port.err,
            "medusa: the environment: MASTER_PORT is '70000', expected a number from 1 to 65535; "
            "set it to a port of process 0's machine that is free, or unset it\n");
}

}  // namespace
}  // namespace medusa::cli
