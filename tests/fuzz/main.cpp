// Feeds damaged files to the readers of foreign files. Built with ASan and UBSan (preset dev).
//
//   fuzz_readers TARGET [SECONDS [INPUTS [SEED]]]   until the time or the number is used up
//   fuzz_readers TARGET FILE                        one file
//
// A crash, an exception that is no UserError, a refusal without its four parts, more than a second
// for one input, or one allocation above twice the file and 64 MB ends the run; the input stays as
// the file that is named. Inputs whose refusal says something new, apart from numbers and names,
// are kept and damaged further: new words mean new code.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/temp_folder.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"

// Inputs have at most 64 KiB, so twice the file adds nothing to speak of.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=64:allocator_may_return_null=0:detect_leaks=1";
}

namespace medusa::fuzz {
namespace {

constexpr double kSlow = 1.0;  // CPU seconds for one input

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A refusal without what differs between files: numbers and quoted names.
std::string shape_of(const std::string& message) {
  std::string shape;
  bool quoted = false;
  for (const char c : message) {
    if (c == '\'' || c == '"') quoted = !quoted;
    if (!quoted && (c < '0' || c > '9')) shape += c;
  }
  return shape.substr(0, 200);
}

/// Where the input is kept if it is a finding: it is not removed then.
struct Finding {
  std::string what;
};

class Run {
 public:
  Run(const FuzzTarget& target, const std::filesystem::path& folder)
      : target_(target), path_((folder / target.file).string()) {}

  /// @returns true if the input did something that no earlier one did.
  bool input(const std::string& bytes) {
    write(bytes);
    const double begin = cpu_seconds();
    std::string result = "read";
    try {
      target_.run(path_);
    } catch (const UserError& error) {
      result = error.what();
      if (result.find("; ") == std::string::npos)
        throw Finding{fmt::format("a refusal without its remedy: {}", result)};
    } catch (const std::exception& error) {
      throw Finding{fmt::format("an exception that is no UserError: {}", error.what())};
    }
    if (const double spent = cpu_seconds() - begin; spent > kSlow)
      throw Finding{fmt::format("{:.1f} seconds", spent)};
    return shapes_.insert(shape_of(result)).second;
  }

  const std::string& path() const { return path_; }
  size_t shapes() const { return shapes_.size(); }

 private:
  /// Plainly: nothing needs to be safe on a disk here, and there are thousands a second.
  void write(const std::string& bytes) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
        std::fclose(file) != 0)
      throw UserError(fmt::format("{}: cannot be written, expected a disk with space", path_));
  }

  const FuzzTarget& target_;
  std::string path_;
  std::set<std::string> shapes_;
};

struct Limits {
  double seconds = 10;
  size_t inputs = SIZE_MAX;
  uint64_t seed = 1;
};

void fuzz(const FuzzTarget& target, const Limits& limits, Run& run) {
  std::vector<std::string> pool = target.seeds;
  for (const auto& seed : target.seeds) run.input(seed);
  Mutator mutator(limits.seed, target.tokens);
  const double end = static_cast<double>(std::time(nullptr)) + limits.seconds;
  size_t count = 0;
  for (; count < limits.inputs && static_cast<double>(std::time(nullptr)) < end; ++count) {
    std::string bytes =
        mutator.mutate(pool[mutator.draw(pool.size())], pool[mutator.draw(pool.size())]);
    if (run.input(bytes)) pool.push_back(std::move(bytes));
  }
  fmt::print("{}: {} inputs, {} different results, no finding\n", target.name, count, run.shapes());
}

int run_main(const std::vector<std::string>& words) {
  auto targets = container_targets();
  for (auto& target : text_targets()) targets.push_back(std::move(target));
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const FuzzTarget& target) {
    return words.size() > 1 && target.name == words[1];
  });
  if (found == targets.end()) {
    fmt::print("usage: fuzz_readers TARGET [SECONDS [INPUTS [SEED]]] | TARGET FILE\ntargets:");
    for (const auto& target : targets) fmt::print(" {}", target.name);
    fmt::print("\n");
    return 2;
  }
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("medusa-fuzz-{}-{}", found->name, ::getpid());
  std::filesystem::create_directories(folder);
  Run run(*found, folder);
  try {
    if (words.size() > 2 && std::filesystem::is_regular_file(words[2])) {
      run.input(read_file(words[2]));
    } else {
      Limits limits;
      if (words.size() > 2) limits.seconds = std::stod(words[2]);
      if (words.size() > 3) limits.inputs = std::stoull(words[3]);
      if (words.size() > 4) limits.seed = std::stoull(words[4]);
      fuzz(*found, limits, run);
    }
  } catch (const Finding& finding) {
    fmt::print("{}: {}\n  input: {}\n", found->name, finding.what, run.path());
    return 1;
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace medusa::fuzz

int main(int argc, char** argv) {
  return medusa::fuzz::run_main(std::vector<std::string>(argv, argv + argc));
}
