// The alphabet that byte-level vocabularies are written in: one visible character per byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace medusa {

/// Visible Latin-1 characters stand for their own code; the 68 other bytes take U+0100 onward, in
/// order. A space is so written U+0120 (Ġ), a line feed U+010A.
/// @returns the bytes of a token, or nullopt if it has a character outside the alphabet.
std::optional<std::string> bytes_of_token(std::string_view token);

/// The inverse.
std::string token_of_bytes(std::string_view bytes);

}  // namespace medusa
