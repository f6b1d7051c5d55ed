#include "infer/drafters/shared_texts.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

// As glibc and libstdc++ take it: a node of a table with its share of the buckets and its vector.
constexpr int64_t kKeyBytes = 96;
constexpr int64_t kPlaceBytes = 8;
constexpr int64_t kTextBytes = 160;  // nodes of table and list, the vector's head

}  // namespace

SharedTexts::SharedTexts(int64_t max_bytes) : max_bytes_(max_bytes) {
  MEDUSA_ASSERT(max_bytes >= kFewestBytes, max_bytes);
}

/// Three ids of at most 21 bits each make a key of their own; of larger ones some share theirs,
/// and match_before() tells them apart.
SharedTexts::Key SharedTexts::key_of(std::span<const TokenId> run) {
  Key key = 0;
  for (const TokenId token : run) key = (key << 21) ^ static_cast<uint32_t>(token);
  return key;
}

int64_t SharedTexts::bytes_of(const std::vector<TokenId>& text) {
  return kTextBytes + std::ssize(text) * static_cast<int64_t>(sizeof(TokenId));
}

void SharedTexts::add(std::vector<TokenId> text) {
  if (std::ssize(text) <= kKeyTokens) return;
  if (stands_in_another(text)) return;
  const int64_t most = bytes_of(text) + std::ssize(text) * (kKeyBytes + kPlaceBytes);
  if (most > max_bytes_) return;
  text.shrink_to_fit();
  while (bytes_ + most > max_bytes_) forget_last();
  const uint32_t id = added_++;
  const std::span<const TokenId> tokens(text);
  for (size_t next = kKeyTokens; next < text.size(); ++next)
    note_place(key_of(tokens.subspan(next - kKeyTokens, kKeyTokens)),
               {id, static_cast<uint32_t>(next)});
  bytes_ += bytes_of(text);
  by_use_.push_front(id);
  texts_.emplace(id, Text{std::move(text), by_use_.begin()});
}

void SharedTexts::note_place(Key key, Place place) {
  const auto [found, is_new] = places_.try_emplace(key);
  std::vector<Place>& bucket = found->second;
  if (is_new) bytes_ += kKeyBytes;
  if (bucket.size() == kMostPlaces)
    bucket.erase(bucket.begin());
  else
    bytes_ += kPlaceBytes;
  bucket.push_back(place);
}

/// Then that one was of use.
bool SharedTexts::stands_in_another(std::span<const TokenId> text) {
  const std::span<const TokenId> begin = text.first(text.size() - 1);
  const Places run = longest_match(begin, static_cast<int32_t>(begin.size()));
  if (static_cast<size_t>(run.length) < begin.size()) return false;
  for (const Next& next : continuations(run))
    if (next.token == text.back()) {
      count_use(next.places);
      return true;
    }
  return false;
}

void SharedTexts::forget_last() {
  MEDUSA_ASSERT(!by_use_.empty());
  const auto found = texts_.find(by_use_.back());
  MEDUSA_ASSERT(found != texts_.end());
  const std::span<const TokenId> tokens(found->second.tokens);
  for (size_t next = kKeyTokens; next < tokens.size(); ++next) {
    const auto bucket = places_.find(key_of(tokens.subspan(next - kKeyTokens, kKeyTokens)));
    if (bucket == places_.end()) continue;  // gone with an earlier place of this text
    const auto erased =
        std::erase_if(bucket->second, [&](const Place& at) { return at.text == found->first; });
    bytes_ -= kPlaceBytes * static_cast<int64_t>(erased);
    if (!bucket->second.empty()) continue;
    places_.erase(bucket);
    bytes_ -= kKeyBytes;
  }
  bytes_ -= bytes_of(found->second.tokens);
  texts_.erase(found);
  by_use_.pop_back();
}

/// How many of the last tokens stand before the place.
int32_t SharedTexts::match_before(const Place& place, std::span<const TokenId> tokens,
                                  int32_t most) const {
  const std::vector<TokenId>& text = texts_.at(place.text).tokens;
  const auto limit = std::min({tokens.size(), size_t{place.next}, static_cast<size_t>(most)});
  size_t length = 0;
  while (length < limit && tokens[tokens.size() - 1 - length] == text[place.next - 1 - length])
    ++length;
  return static_cast<int32_t>(length);
}

SharedTexts::Places SharedTexts::longest_match(std::span<const TokenId> tokens,
                                               int32_t most) const {
  Places best;
  best.length = kKeyTokens;
  if (std::ssize(tokens) < kKeyTokens || most < kKeyTokens) return best;
  const auto found = places_.find(key_of(tokens.last(kKeyTokens)));
  if (found == places_.end()) return best;
  for (const Place& place : found->second | std::views::reverse) {
    const int32_t length = match_before(place, tokens, most);
    if (length < best.length) continue;
    if (length > best.length) best = {{}, length};
    best.all.push_back(place);
  }
  return best;
}

std::vector<SharedTexts::Next> SharedTexts::continuations(const Places& run) const {
  std::map<TokenId, Places> found;
  for (const Place& place : run.all) {
    const std::vector<TokenId>& text = texts_.at(place.text).tokens;
    if (place.next >= text.size()) continue;
    Places& places = found[text[place.next]];
    places.length = run.length + 1;
    places.all.push_back({place.text, place.next + 1});
  }
  std::vector<Next> out;
  for (auto& [token, places] : found) out.push_back({token, std::move(places)});
  return out;
}

void SharedTexts::count_use(const Places& places) {
  for (const Place& place : places.all) {
    const auto found = texts_.find(place.text);
    if (found != texts_.end()) by_use_.splice(by_use_.begin(), by_use_, found->second.place_in_use);
  }
}

}  // namespace medusa
