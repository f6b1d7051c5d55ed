#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace medusa {
namespace {

volatile std::sig_atomic_t g_sigints = 0, g_sigterms = 0;
volatile std::sig_atomic_t g_outlives_sigint = 0, g_elsewhere = 0;

extern "C" void on_signal(int signal) {
  if (signal == SIGINT)
    g_sigints = g_sigints + 1;
  else
    g_sigterms = g_sigterms + 1;
  if (g_sigterms + (g_outlives_sigint != 0 ? 0 : g_sigints) > 1) _exit(128 + signal);
}

}  // namespace

void install_interrupt_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return g_sigints > 0 || g_sigterms > 0; }

void interrupted_elsewhere() { g_elsewhere = 1; }

int interrupted_status() {
  if (g_sigterms > 0) return 128 + SIGTERM;
  if (g_sigints > 0) return 128 + SIGINT;
  return g_elsewhere > 0 ? 128 + SIGTERM : 0;
}

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

void outlive_sigint() { g_outlives_sigint = 1; }

bool take_sigint() {
  if (g_sigints == 0 || g_sigterms > 0) return false;
  g_sigints = 0;
  return true;
}

}  // namespace medusa
