#include "server/access.h"

#include <fmt/format.h>

#include <regex>

#include "base/error.h"
#include "server/api_error.h"

namespace medusa {
namespace {

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
