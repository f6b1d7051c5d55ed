// What medusa profile measured, as JSON, text and page. No LibTorch.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/profile/launch_counter.h"
#include "tools/profile/step_work.h"
#include "tools/report/html.h"

namespace medusa {

inline constexpr const char* kProfileFormat = "medusa-profile";
inline constexpr double kGiga = 1e9;

/// What this machine can do at most. Best of several repetitions.
struct Roofline {
  double read_bytes_per_s = 0;  // a sum over memory far larger than the caches
  double copy_bytes_per_s = 0;  // bytes read and bytes written together
  /// Of the faster of LibTorch's large GEMM and our own, in the model's dtype or float32;
  /// GEMMs of 8-bit levels may pass it.
  double flops_per_s = 0;

  double bytes_per_s() const {
    return read_bytes_per_s > copy_bytes_per_s ? read_bytes_per_s : copy_bytes_per_s;
  }
};

struct ProfiledPart {
  std::string name;
  double ms = 0;
  StageWork work;
};

/// Shares of the roofline that a part reaches, 0 to 1 or, where its data come from the caches,
/// more. Zero where the part has no such work.
struct RooflineShares {
  double memory = 0;
  double arithmetic = 0;

  double larger() const { return memory > arithmetic ? memory : arithmetic; }
};
RooflineShares shares_of(const ProfiledPart& part, const Roofline& roofline);

/// A step of one sequence.
struct ProfiledStep {
  int64_t context = 0;                 // committed rows before it
  int32_t rows = 0;                    // N
  std::vector<ProfiledPart> parts;     // in their order
  std::optional<Launches> launches{};  // nothing: on a CPU, where there are none

  double ms() const;
};

struct Profile {
  std::string machine;   // with threads, dtype and kernels
  std::string backbone;  // fingerprint
  int64_t repeats = 0;   // of each step, at least
  bool complete = true;  // false: interrupted, with fewer repetitions or contexts
  bool drafted = false;  // with the run's heads; else the rows are a chain that nobody drafted
  Roofline roofline;
  std::vector<ProfiledStep> steps;  // by context, then rows, both ascending
};

/// The steps of each context. Valid as long as the profile.
std::vector<std::vector<const ProfiledStep*>> by_context(const Profile& profile);

/// As the file and --json hold it.
nlohmann::ordered_json profile_json(const Profile& profile);

// A profile as text.

/// The roofline, then for each context the milliseconds of every part by the number of rows, and
/// how much of the roofline it reaches.
std::string profile_table(const Profile& profile);

/// "62 % of memory": the nearer of the two roofs; "–" where a part has no counted work.
std::string roofline_text(const ProfiledPart& part, const Roofline& roofline);

// profile.html: the tables and pictures of a profile as one page.

/// Inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same profile gives the same
/// bytes.
/// @param profile  of at least one step.
std::string profile_page(const Profile& profile, const PageFrame& frame = {});

}  // namespace medusa
