#include "server/http/http_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "server/http/request_head.h"

namespace medusa {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kSlice = 64 << 10;  // bytes of an answer that are written at once

/// One connection's answer to one request.
class Answer : public HttpAnswer {
 public:
  Answer(beast::tcp_stream& stream, const HttpLimits& limits, unsigned version, bool keep_alive,
         bool head)
      : stream_(stream), limits_(limits), version_(version), keep_alive_(keep_alive), head_(head) {}
  ~Answer() override {
    *is_open_ = false;  // a wait that has ended already is not cancelled any more
    watch_.emit(asio::cancellation_type::terminal);
  }

  void add_headers(const std::vector<Header>& headers) override {
    headers_.insert(headers_.end(), headers.begin(), headers.end());
  }

  asio::awaitable<void> reply(int status, std::string_view type, std::string body,
                              std::vector<Header> headers) override {
    status_ = status;
    http::response<http::empty_body> response{http::int_to_status(static_cast<unsigned>(status)),
                                              version_};
    response.set(http::field::content_type, std::string(type));
    for (const auto* list : {&headers_, &headers})
      for (const auto& [name, value] : *list) response.set(name, value);
    response.keep_alive(keep_alive_);
    if (status != 204) response.content_length(body.size());
    std::ostringstream header;
    header << response.base();
    std::string begin = std::move(header).str();
    if (head_) body.clear();
    if (body.size() < kSlice) begin += std::exchange(body, {});  // one packet, perhaps
    co_await write_slices(begin);
    co_await write_slices(body);
  }

  asio::awaitable<void> begin_stream() override {
    status_ = static_cast<int>(http::status::ok);
    http::response<http::empty_body> response{http::status::ok, version_};
    response.set(http::field::content_type, "text/event-stream");
    response.set(http::field::cache_control, "no-cache");
    for (const auto& [name, value] : headers_) response.set(name, value);
    response.set("X-Accel-Buffering", "no");  // nginx would hold the events back
    if (version_ < 11) keep_alive_ = false;   // HTTP/1.0 knows no chunks: the end is the close
    response.keep_alive(keep_alive_);
    if (version_ >= 11) response.chunked(true);
    stream_.expires_after(limits_.write);
    http::response_serializer<http::empty_body> header{response};
    co_await http::async_write_header(stream_, header, use_awaitable);
  }

  asio::awaitable<void> write(std::string text) override {
    if (version_ >= 11) text = fmt::format("{:x}\r\n{}\r\n", text.size(), text);
    co_await write_slices(text);
  }

  asio::awaitable<void> end_stream() override {
    stream_.expires_after(limits_.write);
    if (version_ >= 11) co_await asio::async_write(stream_, http::make_chunk_last(), use_awaitable);
  }

  asio::awaitable<void> write_sign_of_life() override {
    http::response<http::empty_body> sign{http::status::processing, version_};
    stream_.expires_after(limits_.write);
    co_await http::async_write(stream_, sign, use_awaitable);
  }

  void on_leaving(std::function<void()> ended, std::function<void()> gone) override {
    ended_ = std::move(ended);
    gone_ = std::move(gone);
    wait_for_a_sign();
  }

  int status() const override { return status_; }
  bool keeps_alive() const { return keep_alive_; }

 private:
  /// A slow client has the whole time again for each slice.
  asio::awaitable<void> write_slices(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string_view slice = bytes.substr(0, kSlice);
      stream_.expires_after(limits_.write);
      co_await asio::async_write(stream_, asio::buffer(slice), use_awaitable);
      bytes.remove_prefix(slice.size());
    }
  }

  /// What waits for something, and does not call f where the answer has ended before.
  template <typename F>
  auto until_answered(F f) {
    return asio::bind_cancellation_slot(
        watch_.slot(), [is_open = is_open_, f = std::move(f)](error_code error) mutable {
          if (*is_open && error != asio::error::operation_aborted) f(error);
        });
  }

  void wait_for_a_sign() {
    stream_.socket().async_wait(tcp::socket::wait_read, until_answered([this](error_code error) {
                                  tell_of_leaving(error.failed());
                                }));
  }

  /// The client has sent something: its end, or the next request, behind which an end is not read.
  void tell_of_leaving(bool is_broken) {
    pollfd socket{stream_.socket().native_handle(), POLLRDHUP, 0};
    const int events = ::poll(&socket, 1, 0) > 0 ? socket.revents : 0;
    const bool has_ended = (events & POLLRDHUP) != 0;
    const bool takes_signs = version_ >= 11 || status_ != 0;
    if (is_broken || (events & POLLERR) != 0 || (has_ended && !takes_signs)) return gone_();
    if (has_ended) {
      stream_.socket().async_wait(tcp::socket::wait_error,
                                  until_answered([this](error_code) { gone_(); }));
      return ended_();
    }
    again_.expires_after(std::chrono::milliseconds(100));
    again_.async_wait(until_answered([this](error_code) { tell_of_leaving(false); }));
  }

  beast::tcp_stream& stream_;
  const HttpLimits& limits_;
  unsigned version_;
  std::vector<Header> headers_;
  bool keep_alive_, head_;
  int status_ = 0;
  std::function<void()> ended_, gone_;  // as on_leaving() got them
  asio::steady_timer again_{stream_.get_executor()};
  asio::cancellation_signal watch_;
  std::shared_ptr<bool> is_open_ = std::make_shared<bool>(true);
};

/// Ends what a stream reads when the time is over, and leaves it open for an answer: the stream's
/// own limit would close it.
class ReadDeadline {
 public:
  /// @param all  of the server; this one is among them while it lives.
  ReadDeadline(beast::tcp_stream& stream, std::chrono::seconds time, std::set<ReadDeadline*>& all)
      : timer_(stream.get_executor()), watched_(std::make_shared<Watched>(&stream)), all_(all) {
    stream.expires_never();
    set(time);
    all_.insert(this);
  }
  ~ReadDeadline() {
    watched_->stream = nullptr;  // the timer may have fired already
    all_.erase(this);
  }
  ReadDeadline(const ReadDeadline&) = delete;
  ReadDeadline& operator=(const ReadDeadline&) = delete;

  /// Counts the time from now.
  void set(std::chrono::seconds time) {
    timer_.expires_after(time);
    timer_.async_wait([watched = watched_](error_code error) {
      if (error || watched->stream == nullptr) return;
      watched->has_passed = true;
      watched->stream->cancel();
    });
  }
  bool has_passed() const { return watched_->has_passed; }

 private:
  struct Watched {
    explicit Watched(beast::tcp_stream* of) : stream(of) {}
    beast::tcp_stream* stream;  // null: nothing is read any more
    bool has_passed = false;
  };
  asio::steady_timer timer_;
  std::shared_ptr<Watched> watched_;
  std::set<ReadDeadline*>& all_;
};

/// One more of what is counted, for as long as this lives.
class Counted {
 public:
  explicit Counted(int64_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int64_t& count_;
};

/// The request target in a first line whose header did not come to its end.
std::string target_in(const beast::flat_buffer& buffer) {
  std::string_view line(static_cast<const char*>(buffer.data().data()), buffer.size());
  line = line.substr(0, line.find('\r'));
  const size_t method = line.find(' ');
  if (method == std::string_view::npos) return {};
  line.remove_prefix(method + 1);
  return std::string(line.substr(0, line.find(' ')));
}

/// The request without its body.
/// @param target  where the message has none, since its header did not come to its end.
HttpRequest request_of(const http::request<http::string_body>& message, std::string target) {
  if (!message.target().empty()) target = message.target();
  HttpRequest out{std::string(message.method_string()), path_of(target), {}, {}};
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    out.headers.emplace(std::move(name), field.value());
  }
  return out;
}

std::optional<ApiError> late() {
  return ApiError(408, "the request did not arrive in time; send it again");
}

/// The answer to a request that cannot be read; nothing: the client has gone, or says nothing more.
std::optional<ApiError> refusal(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ApiError(431, "the request's header is too long, expected at most 16 kB; shorten it");
  if (error == http::error::body_limit)
    return ApiError(413, "the request's body is too long, expected at most 8 MB; shorten it");
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message)
    return ApiError(400,
                    fmt::format("the request is not HTTP/1.1 ({}); correct it", error.message()));
  return std::nullopt;
}

/// The same for a request whose header was read.
std::optional<ApiError> body_refusal(const error_code& error) {
  if (error == asio::error::no_buffer_space)
    return ApiError(
        503,
        "too many requests with bodies above 256 KiB are answered, expected at most 4 at "
        "once; ask again in a moment");
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ApiError(431,
                    "the request's chunk extensions and trailers are too long, expected at most 16 "
                    "kB of them; leave them out");
  return refusal(error);
}

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& context, HttpLimits limit, HttpHandler handle)
      : io(context), acceptor(context), limits(limit), handler(std::move(handle)) {}

  asio::io_context& io;
  tcp::acceptor acceptor;
  HttpLimits limits;
  HttpHandler handler;
  int64_t num_connections = 0, num_large = 0;
  std::set<beast::tcp_stream*> idle;  // wait for a request, or for the client to close
  std::set<ReadDeadline*> deadlines;  // of requests that are being read
  bool stopping = false;

  asio::awaitable<void> accept() {
    const auto self = shared_from_this();
    while (!stopping) {
      error_code error;
      tcp::socket socket =
          co_await acceptor.async_accept(asio::redirect_error(use_awaitable, error));
      if (stopping) break;
      if (error) {  // no descriptors left, for example: those that are open will close
        asio::steady_timer pause(io, std::chrono::milliseconds(50));
        co_await pause.async_wait(asio::redirect_error(use_awaitable, error));
        continue;
      }
      asio::co_spawn(io, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    const auto self = shared_from_this();
    const Counted counted(num_connections);
    beast::tcp_stream stream(std::move(socket));
    stream.socket().set_option(tcp::no_delay(true));
    try {
      if (num_connections > limits.connections) {
        HttpRequest unread;
        unread.refusal.emplace(503, "too many connections are open; try again later");
        Answer answer(stream, limits, 11, false, false);
        co_await handler(unread, answer);
      } else {
        // It holds what is not understood yet: a header, a line before a chunk, or trailers.
        beast::flat_buffer buffer(limits.header_bytes);
        while (!stopping && co_await serve_one(stream, buffer)) {
        }
      }
    } catch (const std::exception&) {  // the client has gone, or takes nothing
    }
    error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    co_await discard_what_still_comes(stream);
  }

  /// Reads until the client closes, or a limit is reached. Closing with unread bytes would reset
  /// the connection, and the client's system could drop the answer before the client has read it.
  asio::awaitable<void> discard_what_still_comes(beast::tcp_stream& stream) {
    std::vector<char> bytes(16384);
    error_code error;
    stream.expires_after(limits.linger);
    idle.insert(&stream);
    for (uint64_t got = 0; !error && !stopping && got < limits.body_bytes;)
      got += co_await stream.async_read_some(asio::buffer(bytes),
                                             asio::redirect_error(use_awaitable, error));
    idle.erase(&stream);
  }

  /// Reads the body that a header has announced. What frames its chunks, extensions and trailers
  /// included, is no part of the body, so that it is bounded here: as a header is, and by what
  /// small chunks need.
  /// @param large  is set when the body turns out to be large; it is not read further if there are
  ///               too many of them.
  asio::awaitable<error_code> read_body(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                        http::request_parser<http::string_body>& parser,
                                        std::optional<Counted>& large) {
    constexpr uint64_t kFrame = 16;  // bytes around a chunk: its size and two ends of lines
    uint64_t framing = limits.header_bytes, taken = 0;  // bytes that framing may have; of all
    auto count_chunk = [&framing](uint64_t, beast::string_view, error_code&) { framing += kFrame; };
    parser.on_chunk_header(count_chunk);
    parser.eager(true);
    error_code error;
    while (!error && !parser.is_done()) {
      taken += co_await http::async_read_some(stream, buffer, parser,
                                              asio::redirect_error(use_awaitable, error));
      if (!error && taken > parser.get().body().size() + framing) error = http::error::header_limit;
      if (error || large || parser.get().body().size() <= limits.large_body_bytes) continue;
      if (num_large < limits.large_bodies)
        large.emplace(num_large);
      else
        error = asio::error::no_buffer_space;
    }
    co_return error;
  }

  /// @returns  whether the connection goes on.
  asio::awaitable<bool> serve_one(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(limits.header_bytes);
    parser.body_limit(limits.body_bytes);
    error_code error;
    stream.expires_after(limits.idle);
    idle.insert(&stream);
    if (buffer.size() == 0) {
      const auto got = co_await stream.async_read_some(buffer.prepare(4096),
                                                       asio::redirect_error(use_awaitable, error));
      buffer.commit(got);
    }
    idle.erase(&stream);
    if (error || stopping) co_return false;
    std::optional<ReadDeadline> deadline(std::in_place, stream, limits.request, deadlines);
    co_await http::async_read_header(stream, buffer, parser,
                                     asio::redirect_error(use_awaitable, error));
    const unsigned version = error ? 11 : parser.get().version();
    // Taken before the trailers come, which are no headers (RFC 9110, section 6.5.1).
    HttpRequest request = request_of(parser.get(), target_in(buffer));
    if (error)
      request.refusal = refusal(error);
    else if (auto wrong = host_refusal(parser.get(), version))
      request.refusal = std::move(wrong);
    else
      request.refusal = encoding_refusal(parser.get(), version, !parser.is_done());
    std::optional<Counted> large;
    if (!error && !request.refusal) {
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        http::response<http::empty_body> go_on{http::status::continue_, 11};
        co_await http::async_write(stream, go_on, use_awaitable);
      }
      error = co_await read_body(stream, buffer, parser, large);
      if (error) request.refusal = body_refusal(error);
    }
    if (error && deadline->has_passed()) request.refusal = late();
    if (error && !request.refusal) co_return false;
    deadline.reset();
    const bool keep_alive = !request.refusal && parser.keep_alive() && !stopping;
    request.body = std::move(parser.get().body());
    Answer answer(stream, limits, version, keep_alive, request.method == "HEAD");
    co_await handler(request, answer);
    co_return answer.keeps_alive();
  }
};

HttpServer::HttpServer(asio::io_context& io, const tcp::endpoint& endpoint, HttpLimits limits,
                       HttpHandler handler)
    : state_(std::make_shared<State>(io, limits, std::move(handler))) {
  error_code error;
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error)
    throw UserError(fmt::format(
        "--host {} --port {}: cannot be listened on ({}), expected an address of this machine and "
        "a port that no other program has; choose another one",
        endpoint.address().to_string(), endpoint.port(), error.message()));
  endpoint_ = acceptor.local_endpoint();
  asio::co_spawn(io, state_->accept(), asio::detached);
}

HttpServer::~HttpServer() { stop(); }

int64_t HttpServer::num_connections() const { return state_->num_connections; }

void HttpServer::stop() {
  if (std::exchange(state_->stopping, true)) return;
  error_code ignored;
  state_->acceptor.close(ignored);
  for (beast::tcp_stream* stream : state_->idle) stream->cancel();
  for (ReadDeadline* deadline : state_->deadlines) deadline->set(state_->limits.linger);
}

}  // namespace medusa
