#include "server/http/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "server/api/api_error.h"

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

/// The key that a request brings; empty: none.
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.header("authorization");
  const auto matches = [](char a, char b) { return (a | 0x20) == b; };
  if (value.size() > kScheme.size() && std::equal(kScheme.begin(), kScheme.end(), value.begin(),
                                                  [&](char b, char a) { return matches(a, b); }))
    return value.substr(kScheme.size());
  return request.header("x-api-key");
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

void Access::expect_key(const HttpRequest& request) const {
  if (keys.empty() || request.path == "/health" || request.path == "/") return;
  const std::string_view key = key_of(request);
  if (!key.empty() && keys.contains(key)) return;
  throw ApiError(401,
                 fmt::format("the request brings {}, expected one that this server takes, as "
                             "Authorization: Bearer KEY; ask whoever runs it",
                             key.empty() ? "no key" : "a wrong key"),
                 "", "invalid_api_key");
}

void Access::expect_own_page(const HttpRequest& request) const {
  std::string_view origin = request.header("origin");
  if (origin.empty() || cors == "*" || origin == cors) return;
  origin.remove_prefix(std::min(origin.size(), origin.find("://") + 3));
  // Behind a proxy the server's own page has the proxy's name, which no other page can give.
  if (origin == request.header("host") || origin == request.header("x-forwarded-host")) return;
  throw ApiError(403,
                 "the request comes from a page of another origin, expected this server's own; "
                 "start the server with --cors and the page's origin, if it may ask",
                 "", "wrong_origin");
}

std::vector<HttpAnswer::Header> Access::headers() const {
  std::vector<HttpAnswer::Header> out;
  if (cors.empty()) return out;
  out.emplace_back("Access-Control-Allow-Origin", cors);
  if (cors != "*") out.emplace_back("Vary", "Origin");
  return out;
}

bool Access::is_preflight(const HttpRequest& request) const {
  return !cors.empty() && request.method == "OPTIONS" &&
         !request.header("access-control-request-method").empty();
}

std::vector<HttpAnswer::Header> Access::preflight_headers() const {
  std::vector<HttpAnswer::Header> out;
  out.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  out.emplace_back("Access-Control-Allow-Headers",
                   "Authorization, *");  // * leaves Authorization out
  out.emplace_back("Access-Control-Max-Age", "600");
  return out;
}

void expect_origin(const std::string& cors) {
  static const std::regex origin(R"([a-z][a-z0-9+.-]*://[A-Za-z0-9._\[\]:-]+)");
  if (cors == "*" || std::regex_match(cors, origin)) return;
  throw UserError(
      fmt::format("--cors is '{}', expected an origin like https://chat.example.org, without a "
                  "path, or *; give one of these",
                  cors));
}

}  // namespace medusa
