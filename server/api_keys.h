// The keys that a server asks its clients for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// Thread safety: const calls may run at the same time.
class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may ask

  /// @param keys  none of them empty.
  explicit ApiKeys(const std::vector<std::string>& keys);

  /// A key on each line; empty lines and those that begin with # are left out.
  /// @throws UserError  the file cannot be read, or holds no key or one with spaces.
  static ApiKeys read(const std::filesystem::path& file);

  bool empty() const { return digests_.empty(); }

  /// Whether it is one of them. The time that this takes says nothing about the keys.
  bool contains(std::string_view key) const;

 private:
  std::vector<std::string> digests_;  // SHA-256: of the same size, and nothing to steal
};

}  // namespace medusa
