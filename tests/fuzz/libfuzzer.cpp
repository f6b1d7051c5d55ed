// The readers of foreign files under libFuzzer, which sees what code an input reaches. Built by
// preset fuzz, with clang++, in the place of main.cpp:
//
//   fuzz_readers TARGET [-max_total_time=SECONDS] [-runs=N] [libFuzzer's other flags] [CORPUS]
//   fuzz_readers TARGET FILE                        one file
//
// Half of the changes are libFuzzer's own, the others the mutator's, which knows the formats'
// words.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/fuzz/guarded_reader.h"
#include "tests/fuzz/mutator.h"

extern "C" {
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
}

namespace medusa::fuzz {
namespace {

/// Lives until exit(), which removes its folder.
std::unique_ptr<GuardedReader>& reader() {
  static std::unique_ptr<GuardedReader> only;
  return only;
}

/// The flags come first, so that those of the command line replace them; the seeds' folder comes
/// last, so that new inputs go to a corpus that was named.
std::vector<std::string> arguments(const std::vector<std::string>& given, bool one_file) {
  std::vector<std::string> out{given[0],      "-max_len=4096",      "-malloc_limit_mb=64",
                               "-timeout=10", "-rss_limit_mb=4096", "-entropic=0"};
  out.insert(out.end(), given.begin() + 2, given.end());
  if (one_file) return out;
  const auto seeds = reader()->folder() / "seeds";
  std::filesystem::create_directories(seeds);
  size_t number = 0;
  for (const std::string& seed : reader()->target().seeds)
    write_file(seeds / std::to_string(number++), seed);
  out.push_back(seeds.string());
  return out;
}

/// @returns  the program's new arguments, which live as long as it does.
std::vector<std::string> start(const std::vector<std::string>& given) {
  const FuzzTarget* target = given.size() > 1 ? find_target(given[1]) : nullptr;
  if (target == nullptr) {
    fmt::print("usage: fuzz_readers TARGET [libFuzzer's flags] [CORPUS or FILE]\ntargets: {}\n",
               target_names());
    std::exit(2);
  }
  reader() = std::make_unique<GuardedReader>(*target);
  bool one_file = false;
  for (const std::string& word : given)
    one_file |= &word != &given[0] && std::filesystem::is_regular_file(word);
  return arguments(given, one_file);
}

[[noreturn]] void stop_at(const Finding& finding) {
  fmt::print(stderr, "{}: {}\n", reader()->target().name, finding.what);
  std::abort();  // libFuzzer keeps the input
}

}  // namespace
}  // namespace medusa::fuzz

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using medusa::fuzz::reader;
  static std::vector<std::string> words;
  static std::vector<char*> pointers;
  words = medusa::fuzz::start({*argv, *argv + *argc});
  try {
    reader()->read_known_files();
  } catch (const medusa::fuzz::Finding& finding) {
    medusa::fuzz::stop_at(finding);
  }
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  *argc = static_cast<int>(words.size());
  *argv = pointers.data();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    medusa::fuzz::reader()->check({reinterpret_cast<const char*>(data), size});
  } catch (const medusa::fuzz::Finding& finding) {
    medusa::fuzz::stop_at(finding);
  }
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto& target = medusa::fuzz::reader()->target();
  medusa::fuzz::Mutator mutator(seed, target.tokens);
  std::string bytes = mutator.mutate({reinterpret_cast<const char*>(data), size},
                                     target.seeds[mutator.draw(target.seeds.size())]);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
