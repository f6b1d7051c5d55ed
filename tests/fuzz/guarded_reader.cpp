#include "tests/fuzz/guarded_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "base/error.h"
#include "tests/base/allocation_peak.h"

// Inputs have at most 64 KiB, so twice the file adds nothing to speak of. For speed: blocks that
// were freed are kept from being used again for 8 MB, not 256, which stay in the CPU's cache; where
// a block was taken is not noted (ASAN_OPTIONS=malloc_context_size=30 while a finding is looked
// at).
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=64:allocator_may_return_null=0:detect_leaks=1:"
         "quarantine_size_mb=8:malloc_context_size=0:max_malloc_fill_size=0";
}

namespace medusa::fuzz {
namespace {

constexpr const char* kRead = "read";

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

#if defined(__clang__)
#define MEDUSA_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define MEDUSA_UNTRACED
#endif

/// Whether the words stand in the file. Letter by letter and untraced: libFuzzer puts what it sees
/// compared into its next inputs, and would write remedies into files.
MEDUSA_UNTRACED bool stands_in(std::string_view file, std::string_view words) {
  for (size_t begin = 0; begin + words.size() <= file.size(); ++begin) {
    size_t same = 0;
    while (same < words.size() && file[begin + same] == words[same]) ++same;
    if (same == words.size()) return true;
  }
  return false;
}

/// Whether a refusal says what to do: behind a "; " that does not stand in the file with what
/// follows, as part of a name that the refusal quotes.
bool has_remedy(std::string_view refusal, std::string_view file) {
  for (size_t at = refusal.find("; "); at != std::string_view::npos;
       at = refusal.find("; ", at + 2)) {
    const std::string_view words = refusal.substr(at, refusal.find_first_of("'\"", at) - at);
    if (words == "; " || !stands_in(file, words)) return true;
  }
  return false;
}

}  // namespace

GuardedReader::GuardedReader(const FuzzTarget& target)
    : target_(target),
      folder_(std::filesystem::temp_directory_path() /
              fmt::format("medusa-fuzz-{}-{}", target.name, ::getpid())) {
  std::filesystem::create_directories(folder_);
  path_ = (folder_ / target.file).string();
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

GuardedReader::~GuardedReader() {
  ::close(file_);
  std::error_code ignored;
  if (sound_) std::filesystem::remove_all(folder_, ignored);
}

/// Over what is there: nothing needs to be safe on a disk here, and there are thousands a second.
void GuardedReader::write(std::string_view bytes) const {
  const auto size = static_cast<ssize_t>(bytes.size());
  if (::pwrite(file_, bytes.data(), bytes.size(), 0) != size || ::ftruncate(file_, size) != 0)
    throw UserError(
        fmt::format("{}: cannot be written, expected a disk with space; make room", path_));
}

std::string GuardedReader::outcome(std::string_view bytes) {
  write(target_.file_of ? std::string_view(target_.file_of(bytes)) : bytes);
  sound_ = false;
  const double begin = cpu_seconds();
  const size_t before = fixtures::allocated_bytes();
  fixtures::reset_peak();
  std::string result = kRead;
  try {
    target_.run(path_);
  } catch (const UserError& error) {
    result = error.what();
    if (!has_remedy(result, bytes))
      throw Finding{fmt::format("a refusal without its remedy: {}", result)};
  } catch (const std::exception& error) {
    throw Finding{fmt::format("an exception that is no UserError: {}", error.what())};
  }
  if (const double spent = cpu_seconds() - begin; spent > target_.slow_seconds)
    throw Finding{fmt::format("{:.1f} seconds", spent)};
  const size_t taken = fixtures::peak_bytes() - before;
  if (taken > 2 * bytes.size() + target_.spare_bytes)
    throw Finding{fmt::format("{:.1f} MB of memory at once", static_cast<double>(taken) / 1e6)};
  sound_ = true;
  return result;
}

bool GuardedReader::read(std::string_view bytes) {
  return shapes_.insert(shape_of(outcome(bytes))).second;
}

void GuardedReader::read_known(std::string_view bytes, bool valid) {
  const std::string result = outcome(bytes);
  sound_ = (result == kRead) == valid;
  if (!sound_)
    throw Finding{valid ? fmt::format("a valid file is refused: {}", result)
                        : std::string("a file that was a finding once is not refused")};
  shapes_.insert(shape_of(result));
}

void GuardedReader::read_known_files() {
  for (const std::string& seed : target_.seeds) read_known(seed, /*valid=*/true);
  for (const std::string& finding : target_.past_findings) read_known(finding, /*valid=*/false);
}

const FuzzTarget* find_target(std::string_view name) {
  for (const FuzzTarget& target : all_targets())
    if (target.name == name) return &target;
  return nullptr;
}

std::string target_names() {
  std::string names;
  for (const FuzzTarget& target : all_targets()) names += (names.empty() ? "" : " ") + target.name;
  return names;
}

}  // namespace medusa::fuzz
