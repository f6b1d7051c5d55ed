// A profile as text.
#pragma once

#include <string>

#include "tools/profile/profile_result.h"

namespace medusa {

/// The roofline, then for each context the milliseconds of every part by the number of rows, and
/// how much of the roofline it reaches.
std::string profile_table(const Profile& profile);

/// "62 % of memory": the nearer of the two roofs; "–" where a part has no counted work.
std::string roofline_text(const ProfiledPart& part, const Roofline& roofline);

}  // namespace medusa
