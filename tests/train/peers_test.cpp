#include "train/processes/peers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/base/error_text.h"
#include "tests/train/free_port.h"
#include "tests/train/tiny_run.h"
#include "train/processes/own_share.h"
#include "train/processes/peer_sums.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs it for each of several peers, in threads. @returns what each threw as a UserError.
std::vector<std::string> with_peers(int64_t count, double timeout,
                                    const std::function<void(Peers&)>& run) {
  const int64_t port = free_port();
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      errors[static_cast<size_t>(rank)] = fixtures::error_text([&] {
        Peers peers(local_place(rank, count, port), timeout);
        run(peers);
      });
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

const std::vector<std::string> kNoErrors(3, "(no error)");

TEST(Peers, SumInTheOrderOfTheRanks) {
  // In float32 the order decides: (1e8 + 1) - 1e8 is 0, (1e8 - 1e8) + 1 is 1.
  const std::vector<float> numbers{1e8F, 1, -1e8F};
  std::vector<float> sums(3);
  std::vector<int64_t> counts(3);
  EXPECT_EQ(with_peers(3, 20,
                       [&](Peers& peers) {
                         const auto rank = static_cast<size_t>(peers.rank());
                         at::Tensor values = at::full({1000}, numbers[rank], at::kFloat);
                         for (int i = 0; i < 20; ++i) {
                           values.fill_(numbers[rank]);
                           peers.sum(values);
                         }
                         EXPECT_TRUE(values.eq(values[0]).all().item<bool>());
                         sums[rank] = values[0].item<float>();
                         std::vector<int64_t> mine{peers.rank() + 5};
                         sum_counts(&peers, mine);
                         counts[rank] = mine[0];
                       }),
            kNoErrors);
  EXPECT_EQ(sums, std::vector<float>(3, (1e8F + 1) - 1e8F));
  EXPECT_EQ(counts, std::vector<int64_t>(3, 18));
}

/// The addresses, in hexadecimal, at which somebody on this machine listens to the port.
std::vector<std::string> listening_at(int64_t port) {
  std::vector<std::string> out;
  std::ifstream table("/proc/net/tcp"), table6("/proc/net/tcp6");
  for (std::ifstream* each : {&table, &table6})
    for (std::string line; std::getline(*each, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const size_t colon = local.find(':');
      if (state == "0A" && local.substr(colon + 1) == fmt::format("{:04X}", port))
        out.push_back(local.substr(0, colon));
    }
  return out;
}

TEST(Peers, OfOneMachineCannotBeReachedFromOthers) {
  // c10d's store listened at 0.0.0.0 whatever the address.
  const int64_t port = free_port();
  std::thread first([&] {
    EXPECT_NE(fixtures::error_text([&] { Peers(local_place(0, 2, port), 3); }), "(no error)");
  });
  std::vector<std::string> found;
  for (int i = 0; i < 100 && found.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    found = listening_at(port);
  }
  first.join();
  EXPECT_EQ(found, std::vector<std::string>{"0100007F"});
}

/// What process 0 tells in the store, as anybody can read it who reaches it: its ticket, and the
/// port of the connections.
std::string told_in_store(const std::string& address, int64_t port) {
  EXPECT_TRUE(connect_to(address, port, Clock::now() + std::chrono::seconds(20)));
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(20);
  const auto bytes = c10d::TCPStore(address, options).get("medusa/0");
  return {bytes.begin(), bytes.end()};
}

int64_t port_told(const std::string& told) { return std::stoll(told.substr(told.find(' '))); }

TEST(Peers, ListenAtTheNamedAddressAlone) {
  // Both ports were open at all addresses of the machine unless the name was that of loopback.
  const int64_t port = free_port();
  const std::string address = "127.0.0.2";  // stands for another network
  std::vector<std::string> errors(2), store, links;
  const auto join = [&](int64_t rank) {
    ProcessPlace place = local_place(rank, 2, port);
    place.address = address;
    errors[static_cast<size_t>(rank)] = fixtures::error_text([&] { Peers(place, 20); });
  };
  std::thread first([&] { join(0); });
  links = listening_at(port_told(told_in_store(address, port)));
  store = listening_at(port);
  join(1);
  first.join();
  EXPECT_EQ(errors, std::vector<std::string>(2, "(no error)"));
  EXPECT_EQ(store, std::vector<std::string>{"0200007F"});
  EXPECT_EQ(links, std::vector<std::string>{"0200007F"});
}

TEST(Peers, OfANameThatIsNotLoopbackListenThereAlone) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  ProcessPlace place = local_place(0, 2, free_port());
  place.address = name;
  try {
    const TcpListener here(name);
  } catch (const UserError& error) {
    GTEST_SKIP() << "no address under its own name: " << error.what();
  }
  std::thread first(
      [&] { EXPECT_NE(fixtures::error_text([&] { Peers(place, 3); }), "(no error)"); });
  const int64_t links = port_told(told_in_store(name, place.port));
  for (const int64_t port : {place.port, links}) {
    const auto found = listening_at(port);
    EXPECT_EQ(found.size(), 1U);
    for (const std::string& each : found) EXPECT_NE(each, "00000000") << "all of them";
  }
  first.join();
}

TEST(Peers, RefuseWhatAnotherProgramWroteIntoTheStore) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  c10d::TCPStore store("127.0.0.1", options);
  const std::string ticket(32, '7');
  for (const std::string& told : {std::string("x"), ticket, ticket + " ", ticket + " 0",
                                  ticket + " 70000", ticket + " x", ticket + "-80"}) {
    store.set("medusa/0", {told.begin(), told.end()});
    EXPECT_EQ(fixtures::error_text([&] { Peers(local_place(1, 2, store.getPort()), 20); }),
              "train: the place that process 0 told in the store at MASTER_ADDR is none, expected "
              "its port; another program uses that store: start all processes with another "
              "MASTER_PORT")
        << told;
  }
}

TEST(Peers, ASilentConnectionKeepsNobodyOut) {
  const int64_t port = free_port();
  std::string said;
  std::thread first(
      [&] { said = fixtures::error_text([&] { Peers(local_place(0, 2, port), 20); }); });
  const std::string told = told_in_store("127.0.0.1", port);
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  const auto at_store = connect_to("127.0.0.1", port, deadline);
  const auto at_links = connect_to("127.0.0.1", port_told(told), deadline);
  EXPECT_TRUE(at_store && at_links);
  const auto began = Clock::now();
  EXPECT_EQ(fixtures::error_text([&] { Peers(local_place(1, 2, port), 20); }), "(no error)");
  first.join();
  EXPECT_EQ(said, "(no error)");
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
}

TEST(Peers, OfOtherMachinesAreNotSentToTheirOwnLoopback) {
  ProcessPlace place = local_place(0, 4, free_port());
  place.address = "localhost";
  place.local_count = 3;
  EXPECT_EQ(fixtures::error_text([&] { Peers(place, 1); }),
            "train: MASTER_ADDR is 'localhost', which is 127.0.0.1 here, and 1 of 4 processes are "
            "on other machines, expected an address at which they reach this one; give that "
            "address in numbers");
}

TEST(Peers, TakeWhatTheFirstOneHas) {
  EXPECT_EQ(with_peers(3, 20,
                       [](Peers& peers) {
                         EXPECT_EQ(value_of_first(&peers, 70 + peers.rank()), 70);
                         EXPECT_EQ(is_true_in_any(&peers, peers.rank() == 2), true);
                         EXPECT_EQ(is_true_in_any(&peers, false), false);
                         at::Tensor weight = at::full({3, 2}, peers.rank(), at::kFloat);
                         weight.set_requires_grad(true);
                         AdamW optimizer({{"weight", weight}});
                         if (peers.rank() == 0) {
                           weight.mutable_grad() = at::ones_like(weight);
                           optimizer.step(0.5, 0, 100);
                         }
                         take_state_of_first(&peers, {{"weight", weight}}, optimizer);
                         EXPECT_NEAR(weight[2][1].item<float>(), -0.5, 1e-6);
                         EXPECT_EQ(optimizer.num_steps(), 1);
                         EXPECT_GT(optimizer.moments()[1].second[0][0].item<float>(), 0);
                       }),
            kNoErrors);
}

TEST(Peers, AddUpLossesAndGradients) {
  EXPECT_EQ(with_peers(3, 20,
                       [](Peers& peers) {
                         const auto rank = peers.rank();
                         std::vector<HeadLoss> heads(2);
                         heads[1] = {0.25 * static_cast<double>(rank), rank, 10, 1, 2, 3};
                         sum_losses(&peers, heads);
                         EXPECT_EQ(heads[0].num_scored, 0);
                         EXPECT_EQ(heads[1].loss, 0.75);
                         EXPECT_EQ(heads[1].num_labels, 3);
                         EXPECT_EQ(heads[1].num_scored, 30);
                         EXPECT_EQ(heads[1].top_1, 3);
                         EXPECT_EQ(heads[1].top_5, 6);
                         EXPECT_EQ(heads[1].top_10, 9);
                         at::Tensor a = at::zeros({2, 2}), b = at::zeros({3});
                         if (rank != 1) a.mutable_grad() = at::full({2, 2}, 1.0);
                         b.mutable_grad() = at::full({3}, static_cast<double>(rank));
                         sum_gradients(&peers, {{"a", a}, {"b", b}});
                         EXPECT_TRUE(a.grad().equal(at::full({2, 2}, 2.0)));
                         EXPECT_TRUE(b.grad().equal(at::full({3}, 3.0)));
                       }),
            kNoErrors);
}

TEST(Peers, SayWhichOneHasSomethingElse) {
  const auto errors = with_peers(3, 20, [](Peers& peers) {
    at::Tensor weight = at::zeros({5});
    check_same_parameters(&peers, {{"weight", weight}}, 7);
    if (peers.rank() == 2) weight[3] = 1e-30F;
    check_same_parameters(&peers, {{"weight", weight}}, 8);
  });
  EXPECT_EQ(errors,
            std::vector<std::string>(
                3,
                "train: process 2 of 3 holds other weights after step 8 than process 0, expected "
                "the same everywhere; run all of them on machines of one kind with as many "
                "threads"));
}

TEST(Peers, SayWhichOneIsGone) {
  const auto errors = with_peers(3, 20, [](Peers& peers) {
    if (peers.rank() == 2) return;
    peers.wait_for_all();
  });
  const std::string text =
      "train: process {} of 3 ended, or its connection broke, expected it to go on with process "
      "{}; look at what it printed and start all of them again, which continues from the last "
      "checkpoint";
  EXPECT_EQ(errors[0], fmt::format(fmt::runtime(text), 2, 0));
  EXPECT_EQ(errors[1], fmt::format(fmt::runtime(text), 0, 1));
}

TEST(Peers, WaitNoLongerThanTheTimeout) {
  const auto began = std::chrono::steady_clock::now();
  const auto errors = with_peers(2, 1, [](Peers& peers) {
    if (peers.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    peers.wait_for_all();
  });
  EXPECT_EQ(errors[0],
            "train: process 1 of 2 did not answer for 1 s, expected it to go on with process 0; "
            "look at what it printed and start all of them again, which continues from the last "
            "checkpoint");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST(Peers, AllHaveToCome) {
  const int64_t port = free_port();
  EXPECT_EQ(fixtures::error_text([&] { Peers(local_place(0, 2, port), 0.5); }),
            "train: 1 of 2 processes came within 0.5 s, expected all of them; look at what the "
            "others printed, and start them all again (train.peer_timeout_s is how long to wait)");
  EXPECT_EQ(fixtures::error_text([&] { Peers(local_place(1, 2, port), 0.5); }),
            fmt::format("train: process 1 of 2 asked for the others at 127.0.0.1:{} and found none "
                        "within 0.5 s (nobody answered), expected process 0 there; start all "
                        "processes, and set MASTER_ADDR and MASTER_PORT to where process 0 runs "
                        "and a port that is free",
                        port));
  EXPECT_EQ(join_peers({}, 1), nullptr);
}

// c10d would wait for ever.
TEST(Peers, ASilentStrangerInThePlaceOfTheFirstIsWaitedForNoLongerThanTheTimeout) {
  const TcpListener silent("127.0.0.1");
  EXPECT_EQ(fixtures::error_text([&] { Peers(local_place(1, 2, silent.port()), 1); }),
            fmt::format("train: process 1 of 2 asked for the others at 127.0.0.1:{} and found none "
                        "within 1 s (no answer), expected process 0 there; start all processes, "
                        "and set MASTER_ADDR and MASTER_PORT to where process 0 runs and a port "
                        "that is free",
                        silent.port()));
}

TEST(OwnShare, DealsOutEveryPositionOnce) {
  const TinyRun run;
  const DatasetReader dataset = run.open_data();
  std::vector<int64_t> samples{9, 3, 4, 30, 31, 7, 12};
  std::vector<int64_t> pool(200), taken(200), sizes;
  std::iota(pool.begin(), pool.end(), 0);
  int64_t size = 0;
  for (const int64_t sample : samples) size += num_positions(dataset, sample);
  pool.resize(static_cast<size_t>(size));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const OwnShare share = own_share(dataset, samples, rank, 3);
    ASSERT_EQ(std::ssize(share.positions), size);
    const auto own = share.own_of(pool);
    int64_t expected = 0;  // positions of the own samples, from the first to the last
    for (const int64_t sample : share.samples) expected += num_positions(dataset, sample);
    ASSERT_EQ(std::ssize(own), expected);
    for (int64_t i = 0; i < expected; ++i) EXPECT_EQ(own[static_cast<size_t>(i)], i);
    for (size_t i = 0; i < pool.size(); ++i) taken[i] += share.positions[i] >= 0 ? 1 : 0;
    sizes.push_back(expected);
  }
  for (int64_t i = 0; i < size; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], 1) << i;
  EXPECT_LT(*std::max_element(sizes.begin(), sizes.end()), 2 * size / 3);
  EXPECT_EQ(own_share(dataset, samples, 0, 1).samples, samples);
}

}  // namespace
}  // namespace medusa
