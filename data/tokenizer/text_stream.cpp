#include "data/tokenizer/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace medusa {

std::string TextStream::add(TokenId id) {
  if (!show_special_ && tokenizer_.is_special(id)) return "";
  pending_ += tokenizer_.bytes(id);
  std::string text;
  size_t at = 0;
  while (at < pending_.size()) {
    const auto rest = std::string_view(pending_).substr(at);
    const auto step = read_utf8(rest);
    if (step.kind == Utf8Step::Kind::Incomplete) break;
    text += step.kind == Utf8Step::Kind::Character ? rest.substr(0, step.size) : kReplacement;
    at += step.size;
  }
  pending_.erase(0, at);
  return text;
}

std::string TextStream::finish() { return repair_utf8(std::exchange(pending_, {})); }

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const auto& stop : stops_) MEDUSA_ASSERT(!stop.empty());
}

std::string StopMatcher::add(std::string_view text) {
  if (stopped()) return "";
  held_ += text;
  // The stop that is complete first counts, however the text was cut into pieces; of those that end
  // together, the longest.
  size_t cut = std::string::npos;
  size_t end = std::string::npos;
  const std::string* found = nullptr;
  for (const auto& stop : stops_) {
    const size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    if (std::pair(begin + stop.size(), begin) < std::pair(end, cut)) {
      cut = begin;
      end = begin + stop.size();
      found = &stop;
    }
  }
  if (found != nullptr) {
    stop_ = *found;
    held_.resize(cut);
    return std::exchange(held_, {});
  }
  size_t safe = held_.size();  // everything before it can be in no stop string any more
  for (const auto& stop : stops_)
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > 0; --size)
      if (held_.ends_with(std::string_view(stop).substr(0, size))) {
        safe = std::min(safe, held_.size() - size);
        break;
      }
  std::string shown = held_.substr(0, safe);
  held_.erase(0, safe);
  return shown;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace medusa
