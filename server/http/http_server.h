// HTTP/1.1 on one thread: connections as coroutines over Boost.Beast, with limits on everything
// that a client decides.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/api_error.h"

namespace medusa {

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 8 << 20;
  int64_t connections = 1024;
  uint64_t large_body_bytes = 256 << 10;  // bodies of more may take a hundred times as much memory
  int64_t large_bodies = 4;               // of them at once, from reading to the answer's end
  std::chrono::seconds request{30};       // from a request's first byte to its last
  std::chrono::seconds idle{75};          // between requests of a connection
  std::chrono::seconds write{30};         // for the client to take 64 KiB, or what is left
  std::chrono::seconds linger{2};         // for the client to close, once its last answer is sent,
                                          // and to send the rest of a request to a server that ends
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // without the query
  std::string body;
  std::map<std::string, std::string> headers{};  // by their names in small letters
  /// Why it is not read to its end: then the rest is what was understood before, perhaps nothing.
  std::optional<ApiError> refusal{};

  /// The value of a header by that name; empty: it is not there.
  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

/// What a handler answers through: either reply() once, or begin_stream(), events, end_stream().
/// Every function throws boost::system::system_error when the client has gone or takes nothing.
class HttpAnswer {
 public:
  virtual ~HttpAnswer() = default;
  using Header = std::pair<std::string, std::string>;

  /// Adds headers to the answer, whichever it will be. Never a client's text.
  virtual void add_headers(const std::vector<Header>& headers) = 0;

  /// @param headers  never a client's text.
  virtual boost::asio::awaitable<void> reply(int status, std::string_view type, std::string body,
                                             std::vector<Header> headers = {}) = 0;
  virtual boost::asio::awaitable<void> begin_stream() = 0;  // of server-sent events
  /// @param text  whole lines of the event stream, its empty line included.
  virtual boost::asio::awaitable<void> write(std::string text) = 0;
  virtual boost::asio::awaitable<void> end_stream() = 0;

  /// Tells on the io thread, each at most once and until the answer has ended, what becomes of the
  /// client.
  ///
  /// A client that sends its end (TCP's FIN) may have closed the connection, or only its own half
  /// of it, as shutdown(SHUT_WR) does, and still want the answer. Both look the same until
  /// something is written to it: the system of a client that has closed the connection says so
  /// then.
  ///
  /// @param ended  the client sends nothing more; whoever answers writes something soon, a part of
  ///               the answer or write_sign_of_life().
  /// @param gone   the client has closed the connection, or it is broken. HTTP/1.0 knows no sign of
  ///               life: there an end before the answer's beginning counts as this.
  virtual void on_leaving(std::function<void()> ended, std::function<void()> gone) = 0;
  /// Writes "102 Processing", which changes nothing in the answer. Before reply() only, and only
  /// where `ended` was called.
  virtual boost::asio::awaitable<void> write_sign_of_life() = 0;
  /// Gives the status that has been sent; 0: nothing yet.
  virtual int status() const = 0;
};

using HttpHandler =
    std::function<boost::asio::awaitable<void>(const HttpRequest& request, HttpAnswer& answer)>;

/// Accepts connections from its construction on. All of it runs on the io context's thread.
class HttpServer {
 public:
  /// @param endpoint  port 0: any free one.
  /// @param handler   answers, refusals too; what it throws ends the connection.
  /// @throws UserError  the address cannot be listened on.
  HttpServer(boost::asio::io_context& io, const boost::asio::ip::tcp::endpoint& endpoint,
             HttpLimits limits, HttpHandler handler);
  ~HttpServer();

  const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
  int64_t num_connections() const;

  /// Accepts no more connections, and closes those that wait for a request.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
  boost::asio::ip::tcp::endpoint endpoint_;
};

}  // namespace medusa
