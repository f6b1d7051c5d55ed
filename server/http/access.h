// Who may ask: keys, and pages of other origins.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_server.h"

namespace medusa {

/// The keys that a server asks its clients for.
///
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

  /// Says whether the key is one of them. The time that this takes says nothing about the keys.
  bool contains(std::string_view key) const;

 private:
  std::vector<std::string> digests_;  // SHA-256: of the same size, and nothing to steal
};

struct Access {
  ApiKeys keys;      // none: everybody may ask
  std::string cors;  // the origin whose pages may ask, or "*"; empty: browsers let none

  /// @throws ApiError  401: the request brings none of the keys, in Authorization (Bearer) or
  ///                   X-Api-Key, and asks for more than whether the server lives.
  void expect_key(const HttpRequest& request) const;

  /// Refuses what a page of another origin asks for. Browsers send such requests, though they keep
  /// the answers from the page.
  /// @throws ApiError  403.
  void expect_own_page(const HttpRequest& request) const;

  /// Gives the headers that let a browser give an answer to a page.
  std::vector<HttpAnswer::Header> headers() const;
  /// Says whether a browser asks if a page may ask.
  bool is_preflight(const HttpRequest& request) const;
  std::vector<HttpAnswer::Header> preflight_headers() const;
};

/// @param cors  "*" or an origin: a scheme, a host and perhaps a port.
/// @throws UserError  it is neither.
void expect_origin(const std::string& cors);

}  // namespace medusa
