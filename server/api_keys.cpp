#include "server/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

constexpr size_t kMostKeyFileBytes = 1 << 20;  // of the file

/// Whether two texts of the same size are the same, looking at all of both.
bool same_in_constant_time(const std::string& a, const std::string& b) {
  unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
  return differs == 0;
}

std::string read_key_file(const std::filesystem::path& file) {
  try {
    return read_file(file, kMostKeyFileBytes);
  } catch (const UserError& error) {
    throw UserError(fmt::format("--api-keys {}", error.what()));
  }
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(fingerprint_text(key));
}

ApiKeys ApiKeys::read(const std::filesystem::path& file) {
  std::istringstream lines(read_key_file(file));
  std::vector<std::string> keys;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    if (std::any_of(line.begin(), line.end(), [](char c) { return c <= ' ' || c > '~'; }))
      throw UserError(fmt::format(
          "--api-keys {}:{}: the key has a space or a character that is not ASCII, expected "
          "letters, digits and signs alone; correct it",
          file.string(), number));
    keys.push_back(std::move(line));
  }
  if (keys.empty())
    throw UserError(
        fmt::format("--api-keys {}: there is no key in it, expected one on each line; write one, "
                    "for example what openssl rand -hex 32 prints",
                    file.string()));
  return ApiKeys(keys);
}

bool ApiKeys::contains(std::string_view key) const {
  const std::string digest = fingerprint_text(key);
  bool found = false;
  for (const std::string& each : digests_) found |= same_in_constant_time(each, digest);
  return found;
}

}  // namespace medusa
