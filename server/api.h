// The server's endpoints: which path answers what.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "server/access.h"
#include "server/grammars.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/scheduler.h"

namespace medusa {

struct ApiOptions {
  Access access;
  std::chrono::milliseconds deadline{0};  // for an answer; 0: none
  std::chrono::milliseconds ping{15000};  // of silence, after which a stream says a word
};

/// Thread safety: the io thread alone.
class Api {
 public:
  /// Seconds without a step, with work waiting, after which /health fails.
  static constexpr double kStuckSeconds = 60;

  Api(Scheduler& scheduler, ServerMetrics& metrics, ApiOptions options);

  /// Answers one request. Errors of the client's become answers, too.
  boost::asio::awaitable<void> handle(const HttpRequest& request, HttpAnswer& answer);

  /// From now on /health says 503 and new generations are refused; those that run go on.
  void drain() { draining_ = true; }

 private:
  using Endpoint =
      std::function<boost::asio::awaitable<void>(const HttpRequest& request, HttpAnswer& answer)>;

  boost::asio::awaitable<void> json(HttpAnswer& answer, int status, std::string body);
  boost::asio::awaitable<void> health(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> models(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> tokenize(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> detokenize(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> tokenizer_info(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> slots(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> page(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> metrics_text(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> complete(const HttpRequest& request, HttpAnswer& answer);
  boost::asio::awaitable<void> count_tokens(const HttpRequest& request, HttpAnswer& answer);
  std::string new_id();

  Scheduler& scheduler_;
  ServerMetrics& metrics_;
  ApiOptions options_;
  Grammars grammars_;
  std::map<std::string, std::pair<std::string, Endpoint>> endpoints_;  // path -> method, function
  std::random_device random_;
  bool draining_ = false;
};

}  // namespace medusa
