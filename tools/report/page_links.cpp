#include "tools/report/page_links.h"

#include "tools/version.h"

namespace medusa {

PageFrame frame_of(const std::filesystem::path& folder, const std::string& self) {
  return {.measured = date_text() + "; " + version_text(), .links = pages_beside(folder, self)};
}

std::vector<PageLink> pages_beside(const std::filesystem::path& folder, const std::string& self) {
  std::vector<PageLink> links;
  for (const PageLink& each :
       {PageLink{"report.html", "The run"}, PageLink{"bench.html", "Decoding methods compared"},
        PageLink{"profile.html", "Where the time of a step goes"}})
    if (each.file != self && std::filesystem::exists(folder / each.file)) links.push_back(each);
  return links;
}

}  // namespace medusa
