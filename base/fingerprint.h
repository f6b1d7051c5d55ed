// SHA-256 fingerprints: how an artifact says what it was made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace medusa {

/// Hashes bytes as they come; digest() gives "sha256:" and 64 hexadecimal digits.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  Fingerprint& add(std::span<const uint8_t> bytes);
  Fingerprint& add(std::string_view text);
  Fingerprint& add(int64_t number);

  /// The object may not be used afterwards.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Of a file's bytes. @throws UserError  the file cannot be read.
std::string fingerprint_file(const std::filesystem::path& path);

/// Of a text's bytes.
std::string fingerprint_text(std::string_view text);

/// "sha256:4f0c91ab2d3e…", enough for messages.
std::string short_fingerprint(std::string_view fingerprint);

}  // namespace medusa
