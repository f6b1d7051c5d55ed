// Texts that users give: what kind a file is by its name, and what it holds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace medusa {

/// Returns ".json" for "A.JSON": what the name ends with, in lower case; empty: it has no ending.
std::string lower_extension(const std::filesystem::path& file);

/// What some editors put before a text in UTF-8. It belongs to the file, not to the text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// read_file_or_stream() without a byte order mark.
/// @throws  as read_file_or_stream().
std::string read_text(const std::filesystem::path& file);

}  // namespace medusa
