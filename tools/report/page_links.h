// The pages of a run link each other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace medusa {

struct PageLink {
  std::string file;  // beside the page that links it
  std::string name;  // as a reader sees it
};

/// What a page says about itself below its title.
struct PageFrame {
  std::string measured;  // when, and by which medusa; may be empty
  std::vector<PageLink> links;
};

/// The frame of a page that is being written now: today, this program, the pages beside it.
PageFrame frame_of(const std::filesystem::path& folder, const std::string& self);

/// Lists the pages that a run's folder holds: its report, what bench and profile measured.
/// @param self  the page that is being written, which is left out.
std::vector<PageLink> pages_beside(const std::filesystem::path& folder, const std::string& self);

}  // namespace medusa
