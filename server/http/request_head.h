// What a request's header says about its path and about how its body is encoded.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace medusa {

/// The path of a request target, without the query. The target may be in absolute form, as clients
/// send it to proxies and servers have to take it (RFC 9112, section 3.2.2):
/// "http://host/v1/models?x" is "/v1/models".
std::string path_of(std::string_view target);

/// A part of a path with its escapes undone: "my%20model" is "my model". What is no escape stays.
std::string percent_decoded(std::string_view part);

/// Refuses a header with no Host of its own, or several (RFC 9112, section 3.2): two readers of the
/// request may take it to be for different ones.
/// @param version  10 or 11; HTTP/1.0 knows no Host.
std::optional<ApiError> host_refusal(const boost::beast::http::fields& header, unsigned version);

/// Refuses a body in an encoding that is not undone here, so that no byte of it is taken for JSON,
/// and one whose end two readers of the request may find in different places.
/// @param version   10 or 11, of HTTP/1.0 and HTTP/1.1.
/// @param has_body  whether the header announces one.
/// @returns  400, 415 or 501; nothing: the body can be read.
std::optional<ApiError> encoding_refusal(const boost::beast::http::fields& header, unsigned version,
                                         bool has_body);

}  // namespace medusa
