// The program: a table of subcommands, and exceptions turned into exit codes.
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/interrupt.h"
#include "tools/command.h"
#include "tools/command_line.h"

namespace {

constexpr int kUserError = 2;  // the user can fix it
constexpr int kBug = 70;       // we must
constexpr int kInterrupted = 130;

}  // namespace

int main(int argc, char** argv) {
  try {
    medusa::install_interrupt_handler();
    medusa::run_command_line({argv + 1, argv + argc});
    std::fflush(stdout);
    return medusa::interrupted() ? kInterrupted : 0;
  } catch (const medusa::UserError& error) {
    std::fprintf(stderr, "medusa: %s\n", error.what());
    return kUserError;
  } catch (const std::exception& error) {
    std::fprintf(stderr,
                 "medusa: %s\nmedusa: this is a bug, please report it with the command line\n",
                 error.what());
    return kBug;
  }
}
