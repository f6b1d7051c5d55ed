// profile.html: the tables and pictures of a profile as one page.
#pragma once

#include <string>

#include "tools/profile/profile_result.h"
#include "tools/report/page_links.h"

namespace medusa {

/// Inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same profile gives the same
/// bytes.
/// @param profile  of at least one step.
std::string profile_page(const Profile& profile, const PageFrame& frame = {});

}  // namespace medusa
