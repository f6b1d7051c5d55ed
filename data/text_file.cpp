#include "data/text_file.h"

#include <algorithm>

#include "base/file.h"

namespace medusa {

std::string lower_extension(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return extension;
}

std::string read_text(const std::filesystem::path& file) {
  std::string text = read_file_or_stream(file);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace medusa
