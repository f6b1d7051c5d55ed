// A server: one io thread that speaks HTTP, one scheduler thread that owns the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/metrics/metrics.h"
#include "server/served_model.h"

namespace medusa {

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address of this machine, as numbers
  uint16_t port = 8080;            // 0: any free one
  int64_t max_waiting = 256;       // requests that may wait for a free sequence
  std::string api_keys{};          // a file with a key on each line; empty: everybody may ask
  std::string cors{};              // the origin whose pages may ask, or "*"; empty: none
  double deadline = 0;             // seconds for an answer; 0: none
  std::string log{};               // a file for the log of requests, or "-": stdout; empty: none
  bool log_prompts = false;        // the prompts stand in it, too
  MetricsNames metrics_names = MetricsNames::Own;
  double ping = 15;  // seconds of silence, after which a stream says a word
};

/// Thread safety: one thread, but for stop().
class Server {
 public:
  /// Listens and answers from now on, on a thread of its own: 503 until there is a model, which may
  /// take minutes to load.
  /// @param name  of the model, that clients ask for.
  /// @throws UserError  the address cannot be listened on; an option is wrong.
  Server(const std::string& name, const ServerOptions& options);
  ~Server();  // ends at once what still runs
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers with this model from now on. Once.
  void serve(ServedModel model);

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080": where this machine finds it
  /// Tells what whoever starts it should know about who can reach it; empty: this machine alone.
  std::string reach_note() const;

  /// Waits until somebody stops it: SIGTERM or SIGINT where with_signals is true, or stop().
  /// Then it takes no more requests and finishes those that run; a second signal ends these, too.
  /// Once.
  /// @throws Interrupted  with_signals, and one of them came before.
  void run(bool with_signals);

  /// From any thread: as the first signal does.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace medusa
