#include "data/tokenizer/sentencepiece/protobuf_reader.h"

#include <fmt/format.h>

#include <bit>

#include "base/error.h"

namespace medusa {

ProtobufReader::ProtobufReader(std::string_view bytes, std::string source)
    : rest_(bytes), source_(std::move(source)) {}

void ProtobufReader::fail() const {
  throw UserError(
      fmt::format("{}: its fields cannot be read ({} bytes before the end), expected a "
                  "SentencePiece model; copy or download it again",
                  source_, rest_.size()));
}

uint64_t ProtobufReader::read_varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) fail();
  const auto taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = read_varint();
  if (tag >> 3 == 0 || tag >> 32 != 0) fail();
  field_ = static_cast<uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0:
      wire_ = Wire::Varint;
      integer_ = read_varint();
      return true;
    case 1:
      wire_ = Wire::Fixed64;
      bytes_ = take(8);
      return true;
    case 2:
      wire_ = Wire::Bytes;
      bytes_ = take(read_varint());
      return true;
    case 5:
      wire_ = Wire::Fixed32;
      bytes_ = take(4);
      return true;
    default:  // groups, long deprecated
      fail();
  }
}

void ProtobufReader::expect(Wire wire) const {
  if (wire_ != wire) fail();
}

int64_t ProtobufReader::integer() const {
  expect(Wire::Varint);
  return static_cast<int64_t>(integer_);
}

float ProtobufReader::number() const {
  expect(Wire::Fixed32);
  uint32_t bits = 0;
  for (size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(bytes_[i]);
  return std::bit_cast<float>(bits);
}

double ProtobufReader::real() const {
  expect(Wire::Fixed64);
  uint64_t bits = 0;
  for (size_t i = 8; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(bytes_[i]);
  return std::bit_cast<double>(bits);
}

std::string_view ProtobufReader::bytes() const {
  expect(Wire::Bytes);
  return bytes_;
}

}  // namespace medusa
