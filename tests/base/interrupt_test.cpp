#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace medusa {
namespace {

TEST(Interrupt, SigintIsTakenAndForgottenHoweverOftenItCame) {
  install_interrupt_handler();
  outlive_sigint();
  EXPECT_FALSE(take_sigint());
  for (int i = 0; i < 3; ++i) ::raise(SIGINT);  // the second one ends other programs
  EXPECT_TRUE(interrupted());
  EXPECT_EQ(interrupted_status(), 130);
  EXPECT_TRUE(take_sigint());
  EXPECT_EQ(interrupted_status(), 0);
  EXPECT_FALSE(interrupted());
  EXPECT_FALSE(take_sigint());
}

TEST(InterruptDeathTest, AnotherProcessesSignalIsTheStatusButNotTheFirstOfTwo) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        interrupted_elsewhere();
        if (interrupted() || interrupted_status() != 143) _exit(1);
        ::raise(SIGINT);
        _exit(interrupted_status());
      },
      testing::ExitedWithCode(130), "");
}

TEST(InterruptDeathTest, SigtermStaysAndTheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        outlive_sigint();
        ::raise(SIGINT);
        ::raise(SIGTERM);
        if (!take_sigint() && interrupted()) ::raise(SIGTERM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(InterruptDeathTest, ASecondSigintEndsAProcessThatDoesNotOutliveIt) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        ::raise(SIGINT);
        if (interrupted()) ::raise(SIGINT);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace medusa
