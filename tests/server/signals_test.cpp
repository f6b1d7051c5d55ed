#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

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

TEST_F(SignalsDeathTest, LoadingEndsBetweenTwoLayers) {
  EXPECT_EXIT(run_after_signal([] { const Llama llama(tiny_weights(1)); }),
              testing::ExitedWithCode(kInterrupted), "");
}

}  // namespace
}  // namespace medusa
