// Feeds damaged files to the readers of foreign files. Built with ASan and UBSan (preset dev).
//
//   fuzz_readers TARGET [SECONDS [INPUTS [SEED]]]   until the time or the number is used up
//   fuzz_readers TARGET FILE                        one file
//
// guarded_reader.h says what a finding is; it ends the run, and the input stays as the file that is
// named. Inputs whose refusal says something new are kept and damaged further: new words mean new
// code. With clang++, libfuzzer.cpp stands in this file's place.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/guarded_reader.h"
#include "tests/fuzz/mutator.h"

namespace medusa::fuzz {
namespace {

/// Bytes of an input that may be damaged further: those that grew long take long and say the same.
size_t most_kept(const std::vector<std::string>& seeds) {
  size_t most = 4096;
  for (const std::string& seed : seeds) most = std::max(most, 2 * seed.size());
  return most;
}

struct Limits {
  double seconds = 10;
  size_t inputs = SIZE_MAX;
  uint64_t seed = 1;
};

void fuzz(const Limits& limits, GuardedReader& reader) {
  const FuzzTarget& target = reader.target();
  std::vector<std::string> pool = target.seeds;
  const size_t most = most_kept(target.seeds);
  reader.read_known_files();
  Mutator mutator(limits.seed, target.tokens);
  const double end = static_cast<double>(std::time(nullptr)) + limits.seconds;
  size_t count = 0;
  for (; count < limits.inputs && static_cast<double>(std::time(nullptr)) < end; ++count) {
    std::string bytes =
        mutator.mutate(pool[mutator.draw(pool.size())], pool[mutator.draw(pool.size())]);
    if (reader.read(bytes) && bytes.size() <= most) pool.push_back(std::move(bytes));
  }
  fmt::print("{}: {} inputs, {} different results, no finding\n", target.name, count,
             reader.num_results());
}

int run_main(const std::vector<std::string>& words) {
  const FuzzTarget* target = words.size() > 1 ? find_target(words[1]) : nullptr;
  if (target == nullptr) {
    fmt::print("usage: {} TARGET [SECONDS [INPUTS [SEED]]] | TARGET FILE\ntargets: {}\n", words[0],
               target_names());
    return 2;
  }
  GuardedReader reader(*target);
  try {
    if (words.size() > 2 && std::filesystem::is_regular_file(words[2])) {
      reader.read(read_file(words[2]));
    } else {
      Limits limits;
      if (words.size() > 2) limits.seconds = std::stod(words[2]);
      if (words.size() > 3) limits.inputs = std::stoull(words[3]);
      if (words.size() > 4) limits.seed = std::stoull(words[4]);
      fuzz(limits, reader);
    }
  } catch (const Finding& finding) {
    fmt::print("{}: {}\n  input: {}\n", target->name, finding.what, reader.path());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace medusa::fuzz

int main(int argc, char** argv) {
  return medusa::fuzz::run_main(std::vector<std::string>(argv, argv + argc));
}
