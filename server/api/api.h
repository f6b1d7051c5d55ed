// The server's endpoints: which path answers what.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "server/api/aside.h"
#include "server/http/access.h"
#include "server/http/access_log.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "server/request/grammars.h"
#include "server/scheduler.h"

namespace medusa {

struct ApiOptions {
  Access access;
  std::chrono::milliseconds deadline{0};  // for an answer; 0: none
  std::chrono::milliseconds ping{15000};  // of silence, after which a stream says a word
  std::string log{};                      // a file for the log of requests, or "-"; empty: none
  bool log_prompts = false;               // the prompts stand in it, too
};

/// Until it has a model, its endpoints answer 503.
///
/// Thread safety: the io thread alone, but for serve().
class Api {
 public:
  /// Seconds without a step, with work waiting, after which /health fails.
  static constexpr double kStuckSeconds = 60;

  /// @throws UserError  the log cannot be opened.
  Api(ServerMetrics& metrics, ApiOptions options);

  /// From now on it answers with this model. Once, from any thread.
  void serve(Scheduler& scheduler);

  /// Answers one request. Errors of the client's become answers, too.
  boost::asio::awaitable<void> handle(const HttpRequest& request, HttpAnswer& answer);

  /// From now on /health says 503 and new generations are refused; those that run go on.
  void drain() { draining_ = true; }

 private:
  /// A request on its way.
  struct Exchange {
    const HttpRequest& request;
    HttpAnswer& answer;
    LoggedRequest log{};
  };
  /// What there is once the model is loaded.
  struct Loaded {
    explicit Loaded(Scheduler& of)
        : scheduler(of), grammars(of.model().tokenizer, of.model().eos) {}
    Scheduler& scheduler;
    Grammars grammars;
  };
  using JsonOfBody = std::string (Api::*)(const std::string& body) const;
  using Endpoint = std::function<boost::asio::awaitable<void>(Exchange& exchange)>;

  /// What a body asks for a text, and who writes it.
  struct Asked;

  boost::asio::awaitable<void> json(Exchange& exchange, int status, std::string body);
  boost::asio::awaitable<void> read_aside(const HttpRequest& request,
                                          const std::function<void()>& read);
  boost::asio::awaitable<void> answer_with(Exchange& exchange, JsonOfBody json_of);
  // On any thread:
  void read(const HttpRequest& request, const std::string& id, Asked& out) const;
  std::string tokens_json(const std::string& text) const;
  std::string decoded_json(const std::string& text) const;
  std::string token_count_json(const std::string& text) const;
  Scheduler& scheduler() const { return loaded_.load()->scheduler; }  // of an endpoint
  boost::asio::awaitable<void> respond(Exchange& exchange);
  boost::asio::awaitable<void> health(Exchange& exchange);
  boost::asio::awaitable<void> models(Exchange& exchange);
  boost::asio::awaitable<void> one_model(Exchange& exchange);
  boost::asio::awaitable<void> tokenizer_info(Exchange& exchange);
  boost::asio::awaitable<void> slots(Exchange& exchange);
  boost::asio::awaitable<void> page(Exchange& exchange);
  boost::asio::awaitable<void> metrics_text(Exchange& exchange);
  boost::asio::awaitable<void> complete(Exchange& exchange);
  std::string new_id();

  ServerMetrics& metrics_;
  ApiOptions options_;
  AccessLog log_;
  std::unique_ptr<Loaded> own_loaded_;
  std::atomic<Loaded*> loaded_{nullptr};                               // null: the model is loading
  std::map<std::string, std::pair<std::string, Endpoint>> endpoints_;  // path -> method, function
  std::random_device random_;
  bool draining_ = false;
  Aside aside_;  // last: its work refers to all the others
};

}  // namespace medusa
