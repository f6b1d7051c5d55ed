// The program: a table of subcommands, and exceptions turned into exit codes.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/failure.h"

namespace {

constexpr int kInterrupted = 130;

/// LibTorch's OpenMP threads spin while they wait; beside one other busy process that makes a
/// product of 40 µs take 7 ms. A short spin, then sleep, costs nothing on an idle machine. libgomp
/// reads the variable when it is loaded, which is before main: so the program starts itself once
/// more.
void restart_with_short_spins(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  execv("/proc/self/exe", argv);  // returns only if it failed: then we go on as we are
}

/// oneDNN keeps what it prepares for each new shape of a product, a thousand shapes at a megabyte
/// and more. Batches of whole answers have new shapes in every step, less than a hundred. It reads
/// the variable with its first product.
void keep_few_prepared_products() { setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", 0); }

}  // namespace

int main(int argc, char** argv) {
  try {
    medusa::prepare_standard_streams();
    keep_few_prepared_products();
    restart_with_short_spins(argv);
    medusa::install_interrupt_handler();
    medusa::run_command_line(
        argc > 0 ? argv[0] : "medusa",
        argc > 0 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>());
    return medusa::interrupted() ? kInterrupted : 0;
  } catch (const medusa::ReaderGone&) {
    medusa::end_as_broken_pipe();
  } catch (const std::exception& error) {
    const medusa::Failure failure = medusa::failure_of(error);
    if (!failure.message.empty()) medusa::print_note("medusa: {}\n", failure.message);
    return failure.status;
  }
}
