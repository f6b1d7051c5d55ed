#include "data/question_filter.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/utf8.h"

namespace medusa {
namespace {

constexpr size_t kMinWords = 3;
constexpr size_t kMinBytes = 12;  // enough even in one word: not all languages part words
constexpr size_t kShingleBytes = 5;
constexpr double kSameJaccard = 0.7;
constexpr size_t kBands = 16;
constexpr size_t kRows = 4;
constexpr size_t kLoopWords = 12;  // from this many words on, a text may be a loop

uint64_t mix(uint64_t x) {  // splitmix64 finaliser
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3ULL;
  return mix(hash);
}

/// Words in lower case; whatever is neither an ASCII letter or digit nor beyond ASCII parts them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 'A' && byte <= 'Z')
      words.back() += static_cast<char>(byte + ('a' - 'A'));
    else if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

/// A loop repeats the same three words again and again.
bool is_loop(const std::vector<std::string>& words) {
  if (words.size() < kLoopWords) return false;
  std::set<std::array<std::string_view, 3>> triples;
  for (size_t i = 2; i < words.size(); ++i) triples.insert({words[i - 2], words[i - 1], words[i]});
  return 2 * triples.size() < words.size() - 2;
}

bool has_markers(std::string_view text) {
  return text.find("<|") != std::string_view::npos ||
         text.find("[INST]") != std::string_view::npos ||
         text.find("</s>") != std::string_view::npos ||
         text.find(kReplacement) != std::string_view::npos || !is_valid_utf8(text);
}

std::vector<uint64_t> shingles_of(const std::string& text) {
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i == 0 || i + kShingleBytes <= text.size(); ++i)
    hashes.push_back(hash_bytes(std::string_view(text).substr(i, kShingleBytes)));
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

double jaccard(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t both = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    both += a[i] == b[j] ? 1 : 0;
    const bool next_a = a[i] <= b[j];
    const bool next_b = b[j] <= a[i];
    i += next_a ? 1 : 0;
    j += next_b ? 1 : 0;
  }
  return static_cast<double>(both) / static_cast<double>(a.size() + b.size() - both);
}

/// One hash for each band of rows; two similar sets agree in at least one band, most likely.
std::array<uint64_t, kBands> band_hashes(const std::vector<uint64_t>& shingles) {
  std::array<uint64_t, kBands> bands{};
  for (size_t band = 0; band < kBands; ++band) {
    uint64_t hash = mix(band);
    for (size_t row = 0; row < kRows; ++row) {
      const uint64_t salt = mix(band * kRows + row + 1);
      uint64_t least = ~uint64_t{0};
      for (const uint64_t shingle : shingles) least = std::min(least, mix(shingle ^ salt));
      hash = mix(hash ^ least);
    }
    bands[band] = hash;
  }
  return bands;
}

}  // namespace

bool QuestionFilter::is_known(const std::vector<uint64_t>& shingles) {
  const auto bands = band_hashes(shingles);
  std::set<size_t> candidates;
  for (const uint64_t band : bands)
    if (const auto found = bands_.find(band); found != bands_.end())
      candidates.insert(found->second.begin(), found->second.end());
  for (const size_t i : candidates)
    if (jaccard(kept_[i], shingles) >= kSameJaccard) return true;
  for (const uint64_t band : bands) bands_[band].push_back(kept_.size());
  kept_.push_back(shingles);
  return false;
}

QuestionFilter::Verdict QuestionFilter::judge(std::string_view question) {
  const auto words = words_of(question);
  const std::string normal = join(words);
  if (words.size() < kMinWords && normal.size() < kMinBytes) return Verdict::Empty;
  if (is_loop(words) || has_markers(question)) return Verdict::Degenerate;
  return is_known(shingles_of(normal)) ? Verdict::Duplicate : Verdict::Kept;
}

QuestionFilter::Verdict QuestionFilter::add(std::string_view question) {
  const Verdict verdict = judge(question);
  switch (verdict) {
    case Verdict::Kept:
      ++counts_.kept;
      break;
    case Verdict::Empty:
      ++counts_.empty;
      break;
    case Verdict::Degenerate:
      ++counts_.degenerate;
      break;
    case Verdict::Duplicate:
      ++counts_.duplicate;
      break;
  }
  return verdict;
}

}  // namespace medusa
