#include "infer/drafters/text_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

constexpr const char* kVersion = "1";
constexpr TokenId kEndOfText = -1;  // sorts before every token

template <typename T>
std::span<const uint8_t> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

template <typename T>
std::span<const T> values_of(const SafetensorsEntry& entry) {
  return {reinterpret_cast<const T*>(entry.bytes.data()), entry.bytes.size() / sizeof(T)};
}

/// Of the arrays and of everything else that the metadata say.
std::string checksum(const std::map<std::string, std::string>& metadata,
                     std::span<const TokenId> tokens, std::span<const int32_t> suffixes) {
  Fingerprint sum;
  for (const auto& [key, value] : metadata)
    if (key != "checksum") sum.add(key).add(0).add(value).add(0);
  return sum.add(bytes_of(tokens)).add(bytes_of(suffixes)).digest();
}

/// Where every suffix begins, in the order of the tokens up to the end of its text, equal ones in
/// the order of the texts.
std::vector<int32_t> sort_suffixes(const std::vector<TokenId>& tokens) {
  std::vector<int32_t> suffixes;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] != kEndOfText) suffixes.push_back(static_cast<int32_t>(i));
  std::sort(suffixes.begin(), suffixes.end(), [&](int32_t a, int32_t b) {
    for (auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);; ++x, ++y) {
      if (tokens[x] != tokens[y]) return tokens[x] < tokens[y];
      if (tokens[x] == kEndOfText) return a < b;
    }
  });
  return suffixes;
}

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; build it again with medusa build-store", file.string(),
                              found_and_expected));
}

std::string text_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

/// The array of this name.
const SafetensorsEntry& array_of(const SafetensorsFile& file, const char* name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr || entry->dtype != "I32" || entry->shape.size() != 1)
    fail(file.path(), fmt::format("holds no list '{}' of int32, expected one", name));
  if (reinterpret_cast<uintptr_t>(entry->bytes.data()) % alignof(int32_t) != 0)
    fail(file.path(),
         fmt::format("its list '{}' begins between numbers, expected a multiple of 4 bytes", name));
  return *entry;
}

TextStoreInfo read_info(const SafetensorsFile& file) {
  if (const std::string format = text_of(file, "format"); format != kTextStoreFormat)
    throw UserError(fmt::format(
        "{}: a safetensors file of another kind, expected the format {}; give the file that medusa "
        "build-store wrote",
        file.path().string(), kTextStoreFormat));
  if (const std::string version = text_of(file, "version"); version != kVersion)
    fail(file.path(), fmt::format("version '{}' of the format, expected {}", version, kVersion));
  TextStoreInfo info{text_of(file, "tokenizer"), text_of(file, "dataset"), text_of(file, "samples"),
                     0};
  const std::string texts = text_of(file, "num_texts");
  std::from_chars(texts.data(), texts.data() + texts.size(), info.num_texts);
  return info;
}

}  // namespace

void TextStoreWriter::add(std::span<const TokenId> text) {
  for (const TokenId token : text) MEDUSA_ASSERT(token >= 0, token);
  tokens_.insert(tokens_.end(), text.begin(), text.end());
  tokens_.push_back(kEndOfText);
  ++num_texts_;
}

int64_t TextStoreWriter::num_tokens() const {
  return static_cast<int64_t>(tokens_.size()) - num_texts_;
}

void TextStoreWriter::write(const std::filesystem::path& file, TextStoreInfo info) const {
  if (num_tokens() == 0)
    throw UserError(
        fmt::format("{}: there are no texts to look up, expected at least one; distil "
                    "some, or keep fewer of them for validation",
                    file.string()));
  if (tokens_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw UserError(fmt::format(
        "{}: the texts have {} tokens, expected at most {}; build the store from fewer texts",
        file.string(), num_tokens(), std::numeric_limits<int32_t>::max()));
  info.num_texts = num_texts_;
  const std::vector<int32_t> suffixes = sort_suffixes(tokens_);
  const std::span<const TokenId> tokens(tokens_);
  const std::span<const int32_t> sorted(suffixes);
  std::map<std::string, std::string> metadata{
      {"format", kTextStoreFormat},  {"version", kVersion},
      {"tokenizer", info.tokenizer}, {"dataset", info.dataset},
      {"samples", info.samples},     {"num_texts", std::to_string(info.num_texts)}};
  metadata["checksum"] = checksum(metadata, tokens, sorted);
  const std::vector<SafetensorsEntry> entries{
      {"tokens", "I32", {static_cast<int64_t>(tokens.size())}, bytes_of(tokens)},
      {"suffixes", "I32", {static_cast<int64_t>(sorted.size())}, bytes_of(sorted)}};
  write_safetensors(file, entries, metadata);
}

TextStore::TextStore(const std::filesystem::path& file) : file_(file), info_(read_info(file_)) {
  tokens_ = values_of<TokenId>(array_of(file_, "tokens"));
  suffixes_ = values_of<int32_t>(array_of(file_, "suffixes"));
  const std::string found = checksum(file_.metadata(), tokens_, suffixes_);
  if (const std::string expected = text_of(file_, "checksum"); found != expected)
    fail(file, fmt::format("altered since it was written: its contents have checksum {}, expected "
                           "{}",
                           short_fingerprint(found), short_fingerprint(expected)));
  // The checksum is no secret: whoever made the file has made it, too.
  if (tokens_.empty() || tokens_.back() != kEndOfText)
    fail(file, "its last text has no end, expected -1 after each");
  int64_t num_suffixes = 0;
  for (const TokenId token : tokens_) {
    if (token < kEndOfText)
      fail(file, fmt::format("holds token {}, expected ids from 0 on", token));
    num_suffixes += token == kEndOfText ? 0 : 1;
    max_token_ = std::max(max_token_, token);
  }
  if (num_suffixes != std::ssize(suffixes_))
    fail(file, fmt::format("has {} suffixes for {} tokens, expected one for each", suffixes_.size(),
                           num_suffixes));
  for (const int32_t at : suffixes_)
    if (at < 0 || at >= std::ssize(tokens_) || tokens_[static_cast<size_t>(at)] == kEndOfText)
      fail(file, fmt::format("has a suffix at {} of {}, expected the place of a token", at,
                             tokens_.size()));
}

/// The first place from `from` on at which something greater than the token follows the run.
int64_t TextStore::end_of(const Places& run, int64_t from, TokenId token) const {
  int64_t low = from, high = run.last;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (token_after(run, middle) <= token)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

TextStore::Places TextStore::followed_by(const Places& run, TokenId token) const {
  const int64_t first = end_of(run, run.first, token - 1);
  return {first, end_of(run, first, token), run.length + 1};
}

TextStore::Places TextStore::find(std::span<const TokenId> run) const {
  Places places{0, num_tokens(), 0};
  for (const TokenId token : run) {
    if (places.count() == 0) break;
    places = followed_by(places, token);
  }
  return places;
}

std::vector<TextStore::Next> TextStore::continuations(const Places& run) const {
  std::vector<Next> out;
  for (int64_t place = run.first; place < run.last;) {
    const TokenId token = token_after(run, place);
    const int64_t end = end_of(run, place, token);
    if (token != kEndOfText) out.push_back({token, {place, end, run.length + 1}});
    place = end;
  }
  return out;
}

}  // namespace medusa
