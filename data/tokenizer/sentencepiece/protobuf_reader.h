// Reads the fields of one protobuf message, in the order of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace medusa {

/// Usage: while (reader.next()) switch (reader.field()) …; fields that nobody asks for are skipped.
/// Views point into the bytes given. Thread safety: none.
class ProtobufReader {
 public:
  /// @param source  the file, for messages.
  ProtobufReader(std::string_view bytes, std::string source);

  /// Moves to the next field.
  /// @returns false at the end.
  /// @throws UserError  the bytes are no message.
  bool next();

  uint32_t field() const { return field_; }

  // The value of the field. @throws UserError  it has another type.
  int64_t integer() const;         // also an enum or a bool
  float number() const;            // float
  double real() const;             // double
  std::string_view bytes() const;  // string, bytes, or a message inside

 private:
  enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  [[noreturn]] void fail() const;
  uint64_t read_varint();
  std::string_view take(uint64_t size);
  void expect(Wire wire) const;

  std::string_view rest_;
  std::string source_;
  uint32_t field_ = 0;
  Wire wire_ = Wire::Varint;
  uint64_t integer_ = 0;
  std::string_view bytes_;
};

}  // namespace medusa
