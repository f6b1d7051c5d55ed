// The program `medusa-core`, which `medusa` (front/main.cpp) becomes to run a command: exceptions
// turned into exit codes.
#include <exception>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/failure.h"
#include "tools/shortened_file.h"

int main(int argc, char** argv) {
  try {
    medusa::prepare_standard_streams();
    medusa::install_interrupt_handler();
    medusa::report_shortened_files();
    medusa::run_command_line(
        argc > 0 ? argv[0] : "medusa",
        argc > 0 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>());
    return medusa::interrupted_status();
  } catch (const medusa::ReaderGone&) {
    medusa::end_as_broken_pipe();
  } catch (const std::exception& error) {
    const medusa::Failure failure = medusa::failure_of(error);
    if (!failure.message.empty()) medusa::print_note("medusa: {}\n", failure.message);
    return failure.status;
  }
}
