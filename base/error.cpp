#include "base/error.h"

#include <fmt/format.h>

namespace medusa {
namespace {

std::string printable(const std::string& message) {
  std::string text;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    text += control ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return text;
}

}  // namespace

UserError::UserError(const std::string& message) : std::runtime_error(printable(message)) {}

}  // namespace medusa
