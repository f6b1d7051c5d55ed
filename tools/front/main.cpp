// The program `medusa`: answers what needs no LibTorch, and hands all else to medusa-core, which
// lies beside it. Loading LibTorch takes longer than all that is answered here.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "tools/front/at_once.h"
#include "tools/front/built_in_pages.h"

namespace {

constexpr int kUserError = 2, kBug = 70;

/// What LibTorch's libraries read when they are loaded.
void prepare_libraries() {
  // OpenMP threads spin while they wait; beside one other busy process that makes a GEMM of
  // 40 µs take 7 ms. A short spin, then sleep, costs nothing on an idle machine.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", 0);
  // oneDNN keeps what it prepares for each new shape of a GEMM, a thousand shapes at a megabyte
  // and more. Batches of whole answers have new shapes in every step, less than a hundred.
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", 0);
}

[[noreturn]] void become_core(char** argv) {
  const auto core = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "medusa-core";
  prepare_libraries();
  ::execv(core.c_str(), argv);
  throw medusa::UserError(fmt::format(
      "{}: cannot be started ({}), expected the other half of medusa; build or install both again",
      core.string(), std::strerror(errno)));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    medusa::prepare_standard_streams();
    const std::vector<std::string> arguments(argc > 0 ? argv + 1 : argv, argv + argc);
    if (!medusa::answer_at_once(arguments, medusa::built_in_pages())) become_core(argv);
    return 0;
  } catch (const medusa::ReaderGone&) {
    medusa::end_as_broken_pipe();
  } catch (const medusa::UserError& error) {
    medusa::print_note("medusa: {}\n", error.what());
    return kUserError;
  } catch (const std::exception& error) {
    medusa::print_note(
        "medusa: {}\nmedusa: this is a bug, please report it with the command line\n",
        error.what());
    return kBug;
  }
}
