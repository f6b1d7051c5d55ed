// One reader of foreign files, held to what every refusal, second and byte may cost.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"

namespace medusa::fuzz {

/// What a reader did that it must not do.
struct Finding {
  std::string what;
};

/// Files are written to a folder of its own, which it removes unless the last input was a finding.
///
/// Thread safety: none.
class GuardedReader {
 public:
  explicit GuardedReader(const FuzzTarget& target);
  ~GuardedReader();
  GuardedReader(const GuardedReader&) = delete;
  GuardedReader& operator=(const GuardedReader&) = delete;

  /// Reads one input.
  /// @returns true if it did something that no earlier one did: its refusal says something new,
  ///          apart from numbers and names.
  /// @throws Finding  an exception that is no UserError, a refusal without a remedy, more CPU
  ///                  time than the target may take, or more memory at once than twice the input
  ///                  and what the target may spare. A single allocation above 64 MiB ends the
  ///                  program at once.
  bool read(std::string_view bytes);

  /// The same without a memory of what earlier inputs did.
  void check(std::string_view bytes) { (void)outcome(bytes); }

  /// Reads the target's seeds and past findings.
  /// @throws Finding  as above, if a seed is refused, and if a past finding is not.
  void read_known_files();

  const FuzzTarget& target() const { return target_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& path() const { return path_; }  // of the last input
  size_t num_results() const { return shapes_.size(); }

 private:
  std::string outcome(std::string_view bytes);
  void read_known(std::string_view bytes, bool valid);
  void write(std::string_view bytes) const;

  const FuzzTarget& target_;
  std::filesystem::path folder_;
  std::string path_;
  int file_ = -1;  // path_, kept open
  std::set<std::string> shapes_;
  bool sound_ = true;
};

/// All readers of this program (reader_targets.cpp, request_targets.cpp). The list lives as long as
/// it does.
const std::vector<FuzzTarget>& all_targets();

/// nullptr if there is none of this name.
const FuzzTarget* find_target(std::string_view name);

/// "a b c", for usage texts.
std::string target_names();

}  // namespace medusa::fuzz
