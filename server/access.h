// Who may ask: keys, and pages of other origins.
#pragma once

#include <string>
#include <vector>

#include "server/api_keys.h"
#include "server/http_server.h"

namespace medusa {

struct Access {
  ApiKeys keys;      // none: everybody may ask
  std::string cors;  // the origin whose pages may ask, or "*"; empty: browsers let none

  /// @throws ApiError  401: the request brings none of the keys, in Authorization (Bearer) or
  ///                   X-Api-Key, and asks for more than whether the server lives.
  void expect_key(const HttpRequest& request) const;

  /// What lets a browser give an answer to a page.
  std::vector<HttpAnswer::Header> headers() const;
  /// Whether a browser asks if a page may ask.
  bool is_preflight(const HttpRequest& request) const;
  std::vector<HttpAnswer::Header> preflight_headers() const;
};

/// @param cors  "*" or an origin: a scheme, a host and perhaps a port.
/// @throws UserError  it is neither.
void expect_origin(const std::string& cors);

}  // namespace medusa
