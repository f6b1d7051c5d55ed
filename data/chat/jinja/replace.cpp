#include "data/chat/jinja/replace.h"

#include "base/utf8.h"

namespace medusa::jinja {

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t most,
                    Heap& heap) {
  std::string out;
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    heap.check_room(1, out.size() + at + to.size() + 4);
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
    if (!from.empty()) continue;
    if (text.empty()) return out;
    const size_t size = read_utf8(text).size;
    out += text.substr(0, size);
    text.remove_prefix(size);
  }
  out += text;
  return out;
}

}  // namespace medusa::jinja
