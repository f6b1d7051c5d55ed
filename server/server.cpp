#include "server/server.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "server/api/api.h"
#include "server/http/http_server.h"
#include "server/scheduler.h"

namespace medusa {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kLookAgain{20};  // while the last requests finish

asio::ip::tcp::endpoint endpoint_of(const ServerOptions& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error)
    throw UserError(fmt::format(
        "--host is '{}', expected an address in numbers, 127.0.0.1 for this machine alone or "
        "0.0.0.0 for every network; give one of these",
        options.host));
  return {address, options.port};
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

ApiOptions api_options(const ServerOptions& options) {
  if (!options.cors.empty()) expect_origin(options.cors);
  return {.access = {.keys = options.api_keys.empty() ? ApiKeys() : ApiKeys::read(options.api_keys),
                     .cors = options.cors},
          .deadline = milliseconds(options.deadline),
          .ping = milliseconds(options.ping),
          .log = options.log,
          .log_prompts = options.log_prompts};
}

}  // namespace

struct Server::Parts {
  Parts(const std::string& name, const ServerOptions& options)
      : has_keys(!options.api_keys.empty()),
        max_waiting(options.max_waiting),
        metrics(options.metrics_names, name),
        api(metrics, api_options(options)),
        http(io, endpoint_of(options), HttpLimits{},
             [this](const HttpRequest& request, HttpAnswer& answer) {
               return api.handle(request, answer);
             }),
        signals(io),
        look_again(io),
        ended(std::async(std::launch::async, [this] { io.run(); })) {}

  // Coroutines that a second signal left open end with io, and may still cancel what they asked
  // for: then the scheduler is there, and its thread tells them nothing more.
  ~Parts() {
    io.stop();
    if (ended.valid()) ended.wait();
    if (scheduler) scheduler->stop();
  }

  void drain() {
    api.drain();
    http.stop();
    asio::post(io, [this] { wait_for_the_last(); });  // behind connections that just came
  }

  void wait_for_the_last() {
    if (http.num_connections() == 0) return io.stop();
    look_again.expires_after(kLookAgain);
    look_again.async_wait([this](error_code error) {
      if (!error) wait_for_the_last();
    });
  }

  // The first signal lets answers finish, the second leaves them. A grammar that is compiled just
  // then is still waited for: its library cannot be interrupted.
  void await_signal(bool is_first) {
    signals.async_wait([this, is_first](error_code error, int) {
      if (error) return;
      if (!is_first) {
        signals.clear();  // a third one ends the program, whatever it waits for
        return io.stop();
      }
      drain();
      await_signal(false);
    });
  }

  const bool has_keys;
  const int64_t max_waiting;
  ServerMetrics metrics;
  std::optional<Scheduler> scheduler;  // once there is a model
  asio::io_context io{1};
  Api api;
  HttpServer http;
  asio::signal_set signals;
  asio::steady_timer look_again;
  std::future<void> ended;  // of io's thread; last: it uses all the others
};

Server::Server(const std::string& name, const ServerOptions& options)
    : parts_(std::make_unique<Parts>(name, options)) {}

Server::~Server() = default;

void Server::serve(ServedModel model) {
  parts_->scheduler.emplace(std::move(model), parts_->max_waiting, parts_->metrics);
  parts_->api.serve(*parts_->scheduler);
}

uint16_t Server::port() const { return parts_->http.endpoint().port(); }

std::string Server::url() const {
  const auto endpoint = parts_->http.endpoint();
  asio::ip::address address = endpoint.address();
  if (address.is_unspecified())  // every address of this machine: the nearest of them
    address = address.is_v6() ? asio::ip::address(asio::ip::address_v6::loopback())
                              : asio::ip::address(asio::ip::address_v4::loopback());
  const std::string host = address.to_string();
  return address.is_v6() ? fmt::format("http://[{}]:{}", host, endpoint.port())
                         : fmt::format("http://{}:{}", host, endpoint.port());
}

std::string Server::reach_note() const {
  const auto endpoint = parts_->http.endpoint();
  if (endpoint.address().is_loopback()) return {};
  return fmt::format(
      "note: port {} of {} is reachable from other machines, {}; docs/guide/scale-out.md puts a "
      "proxy with "
      "TLS before it\n",
      endpoint.port(), endpoint.address().to_string(),
      parts_->has_keys ? "and nothing that it is asked or answers is encrypted"
                       : "and nobody is asked for a key (--api-keys)");
}

void Server::run(bool with_signals) {
  if (with_signals) {
    parts_->signals.add(SIGINT);
    parts_->signals.add(SIGTERM);
    stop_if_interrupted();  // a signal that came before is not told again
    asio::post(parts_->io, [this] { parts_->await_signal(true); });
  }
  parts_->ended.get();
}

void Server::stop() {
  asio::post(parts_->io, [this] { parts_->drain(); });
}

}  // namespace medusa
