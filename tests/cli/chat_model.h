// The tiny trained model with a chat template, as models come.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "program.h"

namespace medusa::cli {

/// Copies the tiny model and puts a chat template at the head of its metadata. The new bytes are a
/// multiple of GGUF's alignment, so the tensors behind them stay where their offsets say.
inline void write_chat_model(const std::filesystem::path& file) {
  constexpr size_t kAlignment = 32, kCount = 16, kHeader = 24;  // magic, version, tensors, metadata
  std::string model = file_text(CliFixture::model());
  const std::string text = "{% for m in messages %}{{ m['content'] }}{% endfor %}";
  const std::string key = "tokenizer.chat_template";
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const size_t around = 8 + key.size() + 4 + 8;
  EXPECT_EQ((around + text.size()) % kAlignment, 0U) << "lengthen the text with {# #}";
  const std::string entry = number(uint64_t{key.size()}) + key + number(uint32_t{8}) +
                            number(uint64_t{text.size()}) + text;  // 8: a text
  uint64_t entries = 0;
  std::memcpy(&entries, model.data() + kCount, sizeof entries);
  ++entries;
  std::memcpy(model.data() + kCount, &entries, sizeof entries);
  write_text(file, model.insert(kHeader, entry));
}

}  // namespace medusa::cli
