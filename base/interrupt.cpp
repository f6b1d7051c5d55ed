#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace medusa {
namespace {

volatile std::sig_atomic_t g_signals = 0;

extern "C" void on_signal(int signal) {
  g_signals = g_signals + 1;
  if (g_signals > 1) _exit(128 + signal);
}

}  // namespace

void install_interrupt_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return g_signals > 0; }

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace medusa
