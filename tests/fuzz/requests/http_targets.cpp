#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "server/http/access.h"
#include "server/http/access_log.h"
#include "server/http/http_server.h"
#include "tests/fuzz/fuzz_target.h"

namespace medusa::fuzz {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// A server that reads all of each request, and a client in the same thread.
class Loopback {
 public:
  Loopback()
      : access_{.keys = ApiKeys({"a-key"}), .cors = "*"},
        server_(io_, {asio::ip::address_v4::loopback(), 0}, HttpLimits{},
                [this](const HttpRequest& request, HttpAnswer& answer) {
                  std::string body = request.refusal ? request.refusal->what() : request.body;
                  std::replace(body.begin(), body.end(), '/', '|');  // no "HTTP/1.1" in it
                  return answer.reply(status_of(request), "text/plain", std::move(body));
                }) {}

  /// @returns  everything that the server says to these bytes.
  std::string says_to(const std::string& bytes) {
    tcp::socket client(io_);
    client.connect(server_.endpoint());
    bool ended = false;
    std::string reply;
    asio::async_write(client, asio::buffer(bytes), [&](auto, size_t) {
      boost::system::error_code ignored;
      client.shutdown(tcp::socket::shutdown_send, ignored);
    });
    asio::async_read(client, asio::dynamic_buffer(reply), [&](auto, size_t) { ended = true; });
    while (!ended || server_.num_connections() > 0) io_.run_one();
    return reply;
  }

 private:
  /// Asks all that is asked of a request's header.
  int status_of(const HttpRequest& request) const {
    if (request.refusal) return request.refusal->status();
    if (access_.is_preflight(request)) return 204;
    (void)valid_traceparent(request.header("traceparent"));
    try {
      access_.expect_key(request);
    } catch (const ApiError& error) {
      return error.status();
    }
    return 200;
  }

  asio::io_context io_{1};
  Access access_;
  HttpServer server_;
};

/// Ends as a reader's refusal where the last answer is one, so that other words are kept.
void run_http(const std::string& path) {
  static Loopback loopback;
  const std::string reply = loopback.says_to(read_file(path));
  if (reply.empty()) throw UserError("no answer; send a whole request");
  const size_t last = reply.rfind("HTTP/1.");
  if (reply.find("HTTP/1.") != 0) throw std::logic_error("no answer of HTTP: " + reply);
  const std::string status = reply.substr(last + 9, 3);
  if (status == "200" || status == "100") return;
  if (status == "204" || status == "401") throw UserError("preflight or no key; " + status);
  if (status != "400" && status != "413" && status != "415" && status != "431" && status != "501")
    throw std::logic_error("status " + status);
  const std::string body = reply.substr(reply.find("\r\n\r\n", last) + 4);
  throw UserError(body.empty() ? "an answer to HEAD; none" : body);
}

}  // namespace

std::vector<FuzzTarget> http_targets() {
  return {
      {.name = "http",
       .file = "request",
       .seeds = {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                 "a-key\r\nContent-Length: 5\r\n\r\n{\"a\"}",
                 "GET /v1/models?x=1 HTTP/1.1\r\nHost: a\r\nX-Api-Key: a-key\r\ntraceparent: "
                 "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\nGET /health "
                 "HTTP/1.0\r\n\r\n",
                 "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX-Api-Key: "
                 "a-key\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n",
                 "POST /v1/messages HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nX-Api-Key: "
                 "a-key\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"},
       .tokens = {"\r\n",
                  "\r\n\r\n",
                  "\n",
                  "\r",
                  " ",
                  ":",
                  "/",
                  "?",
                  "HTTP/1.1",
                  "HTTP/1.0",
                  "HTTP/9.9",
                  "GET ",
                  "HEAD ",
                  "OPTIONS ",
                  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                  "Content-Length: ",
                  "Content-Length: 18446744073709551615\r\n",
                  "Transfer-Encoding: chunked\r\n",
                  "Transfer-Encoding: gzip, chunked\r\n",
                  "Content-Encoding: gzip\r\n",
                  "3;" + std::string(17000, 'x') + "\r\nabc\r\n",
                  "POST http://host/tokenize?x HTTP/1.1\r\nHost: a\r\n",
                  "ffffffffffffffff\r\n",
                  "0\r\n\r\n",
                  "Expect: 100-continue\r\n",
                  "Connection: keep-alive\r\n",
                  "Connection: Upgrade\r\nUpgrade: h2c\r\n",
                  "Access-Control-Request-Method: POST\r\n",
                  "Authorization: bearer ",
                  "\xFF",
                  std::string(1, '\0'),
                  std::string(17000, 'a')},
       .run = run_http}};
}

}  // namespace medusa::fuzz
