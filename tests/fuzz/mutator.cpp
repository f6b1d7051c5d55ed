#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace medusa::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;  // of a mutated file

/// Lengths, counts and offsets that overflow, are off by one, or ask for too much memory.
constexpr uint64_t kIntegers[] = {0,
                                  1,
                                  2,
                                  0x7F,
                                  0x80,
                                  0xFF,
                                  0x7FFF,
                                  0xFFFF,
                                  0x10000,
                                  0x7FFFFFFF,
                                  0x80000000,
                                  0xFFFFFFFF,
                                  0x100000000,
                                  0x1FFFFFFFFFFFFFFF,
                                  0x7FFFFFFFFFFFFFFF,
                                  0x8000000000000000,
                                  0xFFFFFFFFFFFFFFFF};

constexpr const char* kNumbers[] = {"0",          "-1",         "1e999",
                                    "0.5",        "4294967296", "18446744073709551615",
                                    "2147483647", "1e-400",     "99999999999999999999999"};

}  // namespace

Mutator::Mutator(uint64_t seed, std::vector<std::string> tokens)
    : random_(seed), tokens_(std::move(tokens)) {}

std::string Mutator::mutate(std::string bytes, const std::string& other) {
  for (size_t i = 1 + draw(8); i > 0; --i) change(bytes, other);
  if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
  return bytes;
}

void Mutator::change(std::string& bytes, const std::string& other) {
  const size_t at = draw(bytes.size() + 1);
  switch (draw(10)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(8)));
      return;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(draw(256));
      return;
    case 2:
      bytes.erase(at, 1 + draw(draw(4) == 0 ? 256 : 8));
      return;
    case 3:
      bytes.insert(at, 1 + draw(8), static_cast<char>(draw(256)));
      return;
    case 4:
      return write_integer(bytes);
    case 5:
      return replace_digits(bytes);
    case 6:
      return repeat_range(bytes);
    case 7:  // a piece of another file
      if (!other.empty()) bytes.insert(at, other, draw(other.size()), 1 + draw(64));
      return;
    case 8:
      if (!tokens_.empty()) bytes.insert(at, tokens_[draw(tokens_.size())]);
      return;
    default:  // a word in the place of as many bytes
      if (!tokens_.empty()) {
        const auto& token = tokens_[draw(tokens_.size())];
        bytes.replace(at, token.size(), token);
      }
  }
}

/// A little-endian number of 1, 2, 4 or 8 bytes over what is there.
void Mutator::write_integer(std::string& bytes) {
  const size_t size = size_t{1} << draw(4);
  if (bytes.size() < size) return;
  const size_t at = draw(bytes.size() - size + 1);
  uint64_t value =
      draw(4) == 0 ? bytes.size() + draw(5) - 2 : kIntegers[draw(std::size(kIntegers))];
  for (size_t i = 0; i < size; ++i, value >>= 8) bytes[at + i] = static_cast<char>(value & 0xFF);
}

/// Another number in the place of one that is written in digits.
void Mutator::replace_digits(std::string& bytes) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto from = bytes.begin() + static_cast<int64_t>(draw(bytes.size() + 1));
  const auto first = std::find_if(from, bytes.end(), is_digit);
  const auto last = std::find_if_not(first, bytes.end(), is_digit);
  if (first == last) return;
  const std::string number = kNumbers[draw(std::size(kNumbers))];
  bytes.replace(first, last, number);
}

/// Many copies of a few bytes behind each other: deep nesting, long lists.
void Mutator::repeat_range(std::string& bytes) {
  if (bytes.empty()) return;
  const size_t at = draw(bytes.size());
  const std::string piece = bytes.substr(at, 1 + draw(draw(3) == 0 ? 64 : 4));
  const size_t copies = 1 + draw(draw(20) == 0 ? 4096 : 8);
  std::string run;
  for (size_t i = 0; i < copies && run.size() < kMostBytes; ++i) run += piece;
  bytes.insert(at, run);
}

}  // namespace medusa::fuzz
