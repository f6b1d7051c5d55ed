// A server over the tiny model in this process, and a client that speaks HTTP by itself.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "runtime/model.h"
#include "server/server.h"
#include "tests/infer/toy_heads.h"

namespace medusa::fixtures {

/// The tiny model, which writes stories, decoded by prompt lookup unless a request says otherwise;
/// with all drafters that need no second model. Its chat template puts an empty line between
/// messages, and the names of tools before them.
class TinyServed {
 public:
  /// @param cache_tokens  of all sequences together; none: enough for all of them.
  /// @param shares        a random model of sizes that our kernels compute, so that sequences share
  ///                      beginnings; else the trained one, whose rows depend on their neighbors.
  explicit TinyServed(int32_t sequences, std::optional<int64_t> cache_tokens = std::nullopt,
                      bool shares = false);
  ServedModel model();
  const Model& loaded() const { return loaded_; }
  const ChatTemplate& chat() const { return chat_; }

  /// Whether sequences share beginnings.
  bool shares() const { return target_->rows_are_independent(); }

  /// Empties the cache. No server of the model runs.
  void forget_ended() { target_->forget_ended(); }

  /// The text of a prompt decoded plainly, alone, by a decoder of its own.
  std::string alone(const std::string& prompt, int32_t tokens, double temperature, uint64_t seed);

 private:
  Model loaded_;
  ChatTemplate chat_;
  HeadParts heads_;
  InferConfig settings_;
  std::unique_ptr<BackboneTarget> target_;
  std::unique_ptr<HostDecoder> decoder_;
};

class RunningServer {
 public:
  explicit RunningServer(ServedModel model, ServerOptions options = {});
  ~RunningServer();  // stops it and waits for its end
  uint16_t port() const { return server_.port(); }
  std::string reach_note() const { return server_.reach_note(); }
  void stop() { server_.stop(); }

 private:
  Server server_;
};

struct HttpReply {
  int status = 0;  // 0: the connection ended without an answer
  std::string header, body;
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

/// One connection. Every call throws boost::system::system_error where the server has closed it.
class Client {
 public:
  explicit Client(uint16_t port);
  void send(const std::string& bytes);
  /// Everything up to the end of the connection.
  std::string read_to_end();
  /// At least this many bytes.
  std::string read_some(size_t bytes);
  void close() { socket_.close(); }
  void finish_sending() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

std::string http_request(const std::string& method, const std::string& path,
                         const std::string& body, const std::string& headers = "");
/// Sends one request on a connection of its own.
HttpReply ask(uint16_t port, const std::string& method, const std::string& path,
              const std::string& body = "", const std::string& headers = "");
/// The final answer; interim ones (1xx) before it are left out.
HttpReply parse_reply(const std::string& bytes);

/// The JSON objects of a stream of events, [DONE] and comments left out.
std::vector<nlohmann::json> events_of(const std::string& body);

}  // namespace medusa::fixtures
