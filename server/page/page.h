// The page that GET / answers with: a chat, and the candidate tree of every step beside it.
#pragma once

#include <string_view>

namespace medusa {

/// The page as HTML. It loads nothing else: styles and scripts of server/page/ are part of it.
std::string_view page_html();

}  // namespace medusa
