// Paths, methods, connections and the page, as clients of HTTP see them.
#include <gtest/gtest.h>

#include <thread>

#include "tests/server/server_fixture.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::Client;
using fixtures::events_of;
using fixtures::http_request;
using fixtures::parse_reply;
using nlohmann::json;

class HttpTest : public fixtures::ServerFixture {};

TEST_F(HttpTest, ThePageLoadsNothingElse) {
  const auto reply = ask(port(), "GET", "/");
  ASSERT_EQ(reply.status, 200);
  EXPECT_NE(reply.header.find("Content-Type: text/html"), std::string::npos);
  EXPECT_NE(reply.header.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_TRUE(reply.body.starts_with("<!doctype html>"));
  for (const char* part : {"drawTree", "chatCompletion", "runRace", "--heads:"})
    EXPECT_NE(reply.body.find(part), std::string::npos) << part;
  for (const char* link : {"src=\"http", "href=\"http", "@import", "url(", "@PAGE"})
    EXPECT_EQ(reply.body.find(link), std::string::npos) << link;
}

TEST_F(HttpTest, PathsAndMethodsThatAreNotThere) {
  EXPECT_EQ(ask(port(), "GET", "/nothing").status, 404);
  EXPECT_EQ(ask(port(), "GET", "/v1/completions").status, 405);
  EXPECT_NE(ask(port(), "POST", "/health", "{}").header.find("Allow: GET"), std::string::npos);
  EXPECT_EQ(ask(port(), "GET", "/health?verbose=1").status, 200);
  const auto head = ask(port(), "HEAD", "/v1/models");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(HttpTest, AConnectionServesOneRequestAfterTheOther) {
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    client.send(http_request("GET", "/health", ""));
    EXPECT_EQ(parse_reply(client.read_some(60)).status, 200);
  }
}

TEST_F(HttpTest, WhatIsNoRequestIsRefusedAndTheConnectionCloses) {
  const auto reply_to = [&](const std::string& bytes) {
    Client client(port());
    client.send(bytes);
    client.finish_sending();
    return parse_reply(client.read_to_end()).status;
  };
  EXPECT_EQ(reply_to("hello\r\n\r\n"), 400);
  EXPECT_EQ(reply_to("GET /health HTTP/1.1\r\nX: " + std::string(20000, 'a') + "\r\n\r\n"), 431);
  EXPECT_EQ(reply_to("POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), 413);
  EXPECT_EQ(reply_to("POST /tokenize HTTP/1.1\r\nContent-Length: -5\r\n\r\n"), 400);
  EXPECT_EQ(
      reply_to(
          "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
      400);
  EXPECT_EQ(reply_to("POST /tokenize HTTP/1.1\r\nContent-Length: 50\r\n\r\nhalf"), 0) << "cut off";
  EXPECT_EQ(ask(port(), "GET", "/health").status, 200);
}

TEST_F(HttpTest, WhatCannotBeReadIsRefusedInTheFormOfItsPath) {
  const auto reply_to = [&](const std::string& bytes) {
    Client client(port());
    client.send(bytes);
    client.finish_sending();
    return parse_reply(client.read_to_end()).json();
  };
  const std::string version = " HTTP/1.1\r\n", long_header = "X: " + std::string(20000, 'a');
  for (const std::string path : {"/v1/messages?beta=true", "/v1/messages/count_tokens"}) {
    json error = reply_to("POST " + path + version + "Content-Length: 99999999999\r\n\r\n");
    EXPECT_EQ(error["type"], "error") << error;
    EXPECT_EQ(error["error"]["type"], "request_too_large");
    error = reply_to("POST " + path + version + long_header + "\r\n\r\n");
    EXPECT_EQ(error["type"], "error") << error;
    EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    error = reply_to("POST " + path + version + "Content-Length: -5\r\n\r\n");
    EXPECT_EQ(error["type"], "error") << error;
  }
  const json error = reply_to("POST /v1/responses" + version + long_header + "\r\n\r\n");
  EXPECT_FALSE(error.contains("type")) << error;
  EXPECT_EQ(error["error"]["type"], "invalid_request_error");
  EXPECT_TRUE(reaches("medusa:http_requests_total{status=\"431\"}", 3));
}

/// Requests of which a part is missing.
TEST(HttpServer, GivesWhatCameInTimeToItsHandler) {
  boost::asio::io_context io{1};
  HttpLimits limits;
  limits.request = std::chrono::seconds(1);
  std::vector<std::pair<int, std::string>> handled;
  const HttpServer server(io, {boost::asio::ip::make_address("127.0.0.1"), 0}, limits,
                          [&](const HttpRequest& request, HttpAnswer& answer) {
                            handled.emplace_back(request.refusal ? request.refusal->status() : 0,
                                                 request.path);
                            return answer.reply(408, "text/plain", "late");
                          });
  std::thread thread([&] { io.run(); });
  for (const char* part : {"POST /v1/messages HTTP/1.1\r\nContent-Length: 9\r\n\r\nab",
                           "POST /v1/messages?x HTTP/1.1\r\nContent", "POST /v1/mess", "POST"}) {
    Client client(server.endpoint().port());
    client.send(part);
    const auto reply = parse_reply(client.read_to_end());
    EXPECT_EQ(reply.status, 408);
    EXPECT_EQ(reply.body, "late");
  }
  io.stop();
  thread.join();
  const std::vector<std::pair<int, std::string>> expected{
      {408, "/v1/messages"}, {408, "/v1/messages"}, {408, "/v1/mess"}, {408, ""}};
  EXPECT_EQ(handled, expected);
}

TEST_F(HttpTest, ARefusalArrivesThoughTheClientStillSends) {
  Client client(port());
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  client.send(std::string(4 << 20, 'a'));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the server has answered by now
  EXPECT_EQ(parse_reply(client.read_to_end()).status, 413);
}

TEST_F(HttpTest, AnOldClientGetsItsStreamWithoutChunks) {
  Client client(port());
  const std::string body = R"({"prompt": "Lily and Tom", "max_tokens": 8, "stream": true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const auto reply = parse_reply(client.read_to_end());
  std::string text;
  for (const json& event : events_of(reply.body))
    text += event["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(text, tiny_->alone("Lily and Tom", 8, 0, 1));
}

}  // namespace
}  // namespace medusa
