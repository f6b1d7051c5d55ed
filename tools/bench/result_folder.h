// The folder of a bench: bench.json, bench.jsonl and bench.html, and what stood there before.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/bench/result.h"

namespace medusa {

inline constexpr const char* kBenchFormat = "medusa-bench";

/// The contents of bench.json.
nlohmann::json bench_json(const BenchResult& result);

/// A folder that holds the samples of earlier runs under the same conditions, or none.
class BenchFolder {
 public:
  /// Makes the folder if there is none.
  /// @param of_all      what every result has;  @param of_methods  what some may lack.
  /// @param fresh       what it holds does not count; write() replaces it.
  /// @throws UserError  what it holds and counts was measured under other conditions, or is
  /// damaged.
  BenchFolder(std::filesystem::path folder, const Conditions& of_all,
              const Conditions& of_methods = {}, bool fresh = false);

  /// Of all results that it will hold.
  const Conditions& conditions() const { return conditions_; }
  int64_t next_run() const { return next_run_; }
  std::filesystem::path json() const { return folder_ / "bench.json"; }
  std::filesystem::path answers() const { return folder_ / "bench.jsonl"; }
  std::filesystem::path page() const { return folder_ / "bench.html"; }

  /// The new samples after the earlier ones that still count.
  /// @param complete  false: the new run is not over; then all earlier ones stay.
  std::vector<BenchSample> combined(const std::vector<BenchSample>& newer, bool complete) const;

  /// Each file is the old one or the new one; the answers are written first.
  void write(const BenchResult& result, const std::vector<BenchSample>& samples) const;

 private:
  std::filesystem::path folder_;
  Conditions conditions_;
  std::vector<BenchSample> earlier_;
  int64_t next_run_ = 1;
};

}  // namespace medusa
