#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <thread>

#include "backbone/llama.h"
#include "base/interrupt.h"
#include "tests/backbone/tiny_model.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

constexpr int kInterrupted = 7, kNotInterrupted = 8;

/// Ends the process, in which a signal came before.
template <typename Function>
[[noreturn]] void run_after_signal(Function function) {
  ::alarm(20);
  install_interrupt_handler();
  std::raise(SIGTERM);
  try {
    function();
  } catch (const Interrupted&) {
    ::_exit(kInterrupted);
  }
  ::_exit(kNotInterrupted);
}

class SignalsDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SignalsDeathTest, AServerThatStartsAfterOneDoesNotServe) {
  EXPECT_EXIT(
      {
        fixtures::TinyServed served(1);
        ServerOptions options;
        options.port = 0;
        Server server("tiny", options);
        server.serve(served.model());
        run_after_signal([&] { server.run(true); });
      },
      testing::ExitedWithCode(kInterrupted), "");
}

/// Half a request keeps the server from ending at the first signal.
TEST_F(SignalsDeathTest, BehindTheSecondOneTheNextEndsTheProcess) {
  EXPECT_EXIT(
      {
        ::alarm(20);
        fixtures::TinyServed served(1);
        ServerOptions options;
        options.port = 0;
        Server server("tiny", options);
        server.serve(served.model());
        boost::asio::io_context io;
        boost::asio::ip::tcp::socket client(io);
        client.connect({boost::asio::ip::address_v4::loopback(), server.port()});
        boost::asio::write(client, boost::asio::buffer(std::string_view("POST /v1/completions ")));
        std::thread signals([] {
          for (int i = 0; i < 2; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            ::kill(::getpid(), SIGTERM);
          }
        });
        server.run(true);
        signals.join();
        ::kill(::getpid(), SIGTERM);
        ::_exit(kNotInterrupted);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(SignalsDeathTest, LoadingEndsBetweenTwoLayers) {
  EXPECT_EXIT(run_after_signal([] { const Llama llama(tiny_weights(1)); }),
              testing::ExitedWithCode(kInterrupted), "");
}

}  // namespace
}  // namespace medusa
