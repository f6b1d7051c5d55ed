#include "server/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <vector>

namespace medusa {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kMostShown = 60;  // bytes of a header's value in a message

/// The values of all headers of this name as one list, which is what several of them mean.
std::string joined(const http::fields& header, http::field name) {
  std::string out;
  const auto [first, last] = header.equal_range(name);
  for (auto each = first; each != last; ++each) {
    if (each != first) out += ", ";
    out += std::string_view(each->value());
  }
  return out;
}

/// The elements of a list with commas between them, without the white space around each.
std::vector<std::string_view> elements_of(std::string_view list) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t comma = list.find(',');
    std::string_view each = list.substr(0, comma);
    const size_t begin = std::min(each.find_first_not_of(" \t"), each.size());
    each = each.substr(begin, each.find_last_not_of(" \t") + 1 - begin);
    if (!each.empty()) out.push_back(each);
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

bool is_chunked(std::string_view coding) { return beast::iequals(coding, "chunked"); }

/// RFC 9112, sections 6.1 and 6.3.
std::optional<ApiError> transfer_refusal(const std::string& value, unsigned version) {
  const std::vector<std::string_view> codings = elements_of(value);
  const auto refused = [&](int status, const char* expected) {
    return ApiError(status,
                    fmt::format("the request's Transfer-Encoding is '{}', expected {}; send the "
                                "body with a Content-Length, or chunked and nothing else",
                                value.substr(0, kMostShown), expected));
  };
  if (version < 11) return refused(400, "none, since HTTP/1.0 knows no chunks");
  if (codings.empty() || !is_chunked(codings.back()) ||
      std::count_if(codings.begin(), codings.end(), is_chunked) > 1)
    return refused(400, "'chunked' at its end, once");
  if (codings.size() > 1) return refused(501, "'chunked' alone");
  return std::nullopt;
}

}  // namespace

std::string path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    if (!target.starts_with('/')) return "/";
    break;
  }
  return std::string(target.substr(0, target.find('?')));
}

std::string percent_decoded(std::string_view part) {
  std::string out;
  for (size_t at = 0; at < part.size(); ++at) {
    unsigned code = 0;
    const std::string_view digits = part[at] == '%' ? part.substr(at + 1, 2) : "";
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
      out += part[at];
      continue;
    }
    out += static_cast<char>(code);
    at += 2;
  }
  return out;
}

std::optional<ApiError> host_refusal(const http::fields& header, unsigned version) {
  const size_t hosts = header.count(http::field::host);
  if (hosts == 1 || (hosts == 0 && version < 11)) return std::nullopt;
  return ApiError(400, fmt::format("the request has {} Host headers, expected one; correct the "
                                   "client",
                                   hosts));
}

std::optional<ApiError> encoding_refusal(const http::fields& header, unsigned version,
                                         bool has_body) {
  if (header.count(http::field::transfer_encoding) > 0)
    if (auto wrong = transfer_refusal(joined(header, http::field::transfer_encoding), version))
      return wrong;
  if (!has_body) return std::nullopt;
  const std::string content = joined(header, http::field::content_encoding);
  for (const std::string_view coding : elements_of(content))
    if (!beast::iequals(coding, "identity"))
      return ApiError(415,
                      fmt::format("the request's Content-Encoding is '{}', expected none; send "
                                  "the body as plain JSON",
                                  content.substr(0, kMostShown)));
  return std::nullopt;
}

}  // namespace medusa
