// Paths, methods, connections and the page, as clients of HTTP see them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/http/http_server.h"
#include "server/http/request_head.h"
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

TEST_F(HttpTest, AModelIsFoundByItsNameWithEscapes) {
  const auto name = ask(port(), "GET", "/v1/models").json()["data"][0]["id"].get<std::string>();
  const std::string escaped =
      fmt::format("/v1/models/%{:02x}{}", static_cast<unsigned char>(name[0]), name.substr(1));
  EXPECT_EQ(ask(port(), "GET", escaped).json()["id"], name);
  EXPECT_EQ(percent_decoded("a%20b%2Fc%zz%4"), "a b/c%zz%4");
}

TEST_F(HttpTest, ATargetMayNameTheHostToo) {
  for (const char* target :
       {"http://test/health", "HTTP://test:80/health?x", "https://[::1]:8080/health?a=/b"})
    EXPECT_EQ(ask(port(), "GET", target).status, 200) << target;
  for (const char* target : {"http://test", "http://test?x", "http://test/"})
    EXPECT_NE(ask(port(), "GET", target).header.find("text/html"), std::string::npos) << target;
  EXPECT_EQ(ask(port(), "GET", "http://test/nothing").status, 404);
  EXPECT_EQ(ask(port(), "GET", "ftp://test/health").status, 404);
}

TEST_F(HttpTest, ARequestNamesOneHost) {
  const auto reply_to = [&](const std::string& version, const std::string& hosts) {
    Client client(port());
    client.send(fmt::format("GET /health HTTP/{}\r\nConnection: close\r\n{}\r\n", version, hosts));
    return parse_reply(client.read_to_end());
  };
  EXPECT_EQ(reply_to("1.1", "Host: a\r\n").status, 200);
  EXPECT_EQ(reply_to("1.1", "Host:\r\n").status, 200);
  EXPECT_EQ(reply_to("1.0", "").status, 200);
  EXPECT_EQ(reply_to("1.1", "").json()["error"]["message"],
            "the request has 0 Host headers, expected one; correct the client");
  for (const char* version : {"1.0", "1.1"})
    EXPECT_EQ(reply_to(version, "Host: a\r\nHost: b\r\n").status, 400) << version;
}

TEST_F(HttpTest, ABodyInAnEncodingThatIsNotUndoneIsRefused) {
  const std::string chunks = "f\r\n{\"prompt\": \"a\"}\r\n0\r\n\r\n";
  const auto status = [&](const std::string& headers, const char* version = "HTTP/1.1") {
    Client client(port());
    client.send(fmt::format("POST /tokenize {}\r\nHost: a\r\nConnection: close\r\n{}\r\n{}",
                            version, headers, chunks));
    return parse_reply(client.read_to_end()).status;
  };
  EXPECT_EQ(status("Transfer-Encoding: Chunked\r\n"), 200);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nContent-Encoding: identity\r\n"), 200);
  for (const char* value : {"chunked, chunked", "xchunked", "chunked, gzip", "gzip", ""})
    EXPECT_EQ(status(fmt::format("Transfer-Encoding: {}\r\n", value)), 400) << value;
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "HTTP/1.0"), 400);
  EXPECT_EQ(status("Transfer-Encoding: gzip, chunked\r\n"), 501);
  EXPECT_EQ(status("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"), 415);
  const auto reply =
      ask(port(), "POST", "/tokenize", R"({"prompt": "a"})", "Content-Encoding: br\r\n");
  EXPECT_EQ(reply.status, 415);
  EXPECT_NE(reply.header.find("Accept-Encoding: identity"), std::string::npos) << reply.header;
  EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error");
}

TEST_F(HttpTest, AZeroByteEndsNoBody) {
  const std::string body = R"({"prompt": "a"})";
  EXPECT_EQ(ask(port(), "POST", "/tokenize", body + "\n").status, 200);
  const auto reply = ask(port(), "POST", "/tokenize", body + '\0' + "{}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("the body is not JSON"), std::string::npos) << reply.body;
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
  EXPECT_EQ(
      reply_to("GET /health HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'a') + "\r\n\r\n"),
      431);
  EXPECT_EQ(
      reply_to("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n"),
      413);
  EXPECT_EQ(reply_to("POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n"), 400);
  EXPECT_EQ(reply_to("POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                     "chunked\r\n\r\nffffffffffffffffff\r\n"),
            400);
  EXPECT_EQ(reply_to("POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nhalf"), 0)
      << "cut off";
  EXPECT_EQ(ask(port(), "GET", "/health").status, 200);
}

TEST_F(HttpTest, WhatCannotBeReadIsRefusedInTheFormOfItsPath) {
  const auto reply_to = [&](const std::string& bytes) {
    Client client(port());
    client.send(bytes);
    client.finish_sending();
    return parse_reply(client.read_to_end()).json();
  };
  const std::string version = " HTTP/1.1\r\nHost: a\r\n",
                    long_header = "X: " + std::string(20000, 'a');
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

TEST_F(HttpTest, WhatFramesChunksIsBoundedAsTheHeaderIs) {
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt": "a"})", long_text(20000, 'x');
  const auto reply_to = [&](const std::string& chunks) {
    Client client(port());
    client.send(head + chunks);
    client.finish_sending();
    return parse_reply(client.read_to_end());
  };
  const auto chunk = [](const std::string& text, const std::string& extension) {
    return fmt::format("{:x}{}\r\n{}\r\n", text.size(), extension, text);
  };
  std::string bytewise, extended;
  for (const char each : body) bytewise += chunk({each}, "");
  for (const char each : body) extended += chunk({each}, ";a=" + std::string(2000, 'x'));
  const std::string end = "0\r\n\r\n";
  EXPECT_EQ(reply_to(bytewise + end).status, 200);
  EXPECT_EQ(reply_to(chunk(body, ";a=b") + "0\r\nTrailer: t\r\n\r\n").status, 200);
  for (const std::string& chunks :
       {chunk(body, ";a=" + long_text) + end, chunk(body, "") + "0;a=" + long_text + "\r\n\r\n",
        chunk(body, "") + "0\r\nX: " + long_text + "\r\n\r\n", extended + end,
        std::string(20000, '0') + chunk(body, "") + end}) {
    const auto reply = reply_to(chunks);
    EXPECT_EQ(reply.status, 431) << chunks.substr(0, 30);
    EXPECT_NE(reply.header.find("Connection: close"), std::string::npos);
    EXPECT_NE(reply.body.find("trailers"), std::string::npos) << reply.body;
  }
}

TEST_F(HttpTest, AnExtensionWithoutAnEndIsNotKept) {
  Client client(port());
  client.send("POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=");
  client.send(std::string(64 << 10, 'x'));
  EXPECT_EQ(parse_reply(client.read_some(100)).status, 431) << "before its end has come";
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
  for (const char* part :
       {"POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
        "POST /v1/messages?x HTTP/1.1\r\nHost: a\r\nContent", "POST /v1/mess", "POST"}) {
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

TEST(HttpServer, HalfARequestDoesNotKeepItFromEnding) {
  boost::asio::io_context io{1};
  HttpServer server(io, {boost::asio::ip::make_address("127.0.0.1"), 0}, HttpLimits{},
                    [](const HttpRequest& request, HttpAnswer& answer) {
                      return answer.reply(request.refusal ? request.refusal->status() : 200,
                                          "text/plain", "");
                    });
  std::thread thread([&] { io.run(); });
  Client half(server.endpoint().port()), idle(server.endpoint().port());
  half.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto began = std::chrono::steady_clock::now();
  boost::asio::post(io, [&] { server.stop(); });
  EXPECT_EQ(parse_reply(half.read_to_end()).status, 408);
  half.close();
  idle.close();
  thread.join();  // nothing is left to do
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

/// A server of its own limits, whose answer is as many bytes.
class SmallServer {
 public:
  SmallServer(HttpLimits limits, size_t bytes)
      : server_(io_, {boost::asio::ip::make_address("127.0.0.1"), 0}, limits,
                [bytes](const HttpRequest& request, HttpAnswer& answer) {
                  return answer.reply(request.refusal ? request.refusal->status() : 200,
                                      "text/plain", std::string(bytes, 'x'));
                }),
        thread_([this] { io_.run(); }) {}
  ~SmallServer() {
    io_.stop();
    thread_.join();
  }
  uint16_t port() const { return server_.endpoint().port(); }

 private:
  boost::asio::io_context io_{1};
  HttpServer server_;
  std::thread thread_;
};

TEST(HttpServer, AClientThatReadsSlowlyGetsAllOfALongAnswer) {
  constexpr size_t kBytes = 24 << 20;
  HttpLimits limits;
  limits.write = std::chrono::seconds(1);
  const SmallServer server(limits, kBytes);
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  size_t got = 0;
  while (got < kBytes) {
    got += client.read_some(std::min(kBytes - got, size_t{1} << 20)).size();
    std::this_thread::sleep_for(std::chrono::milliseconds(80));  // two seconds in all
  }
}

TEST(HttpServer, OnlySoManyLargeBodiesAreHeldAtOnce) {
  HttpLimits limits;
  limits.large_bodies = 2;
  limits.large_body_bytes = 1000;
  const SmallServer server(limits, 1);
  const auto head = [](int bytes) {
    return fmt::format("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", bytes);
  };
  const auto status = [&](int bytes) {
    Client client(server.port());
    client.send(head(bytes) + std::string(static_cast<size_t>(bytes), 'a'));
    client.finish_sending();
    return parse_reply(client.read_to_end()).status;
  };
  EXPECT_EQ(status(2000), 200);
  std::optional<Client> first(std::in_place, server.port()), second(std::in_place, server.port());
  for (auto* client : {&first, &second}) (*client)->send(head(2000) + std::string(1500, 'a'));
  for (int i = 0; i < 100 && status(2000) == 200; ++i)  // until the server has read them
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(status(2000), 503);
  EXPECT_EQ(status(1000), 200) << "small ones go on";
  first->send(std::string(500, 'a'));
  first->finish_sending();
  EXPECT_EQ(parse_reply(first->read_to_end()).status, 200);
  first.reset();
  EXPECT_EQ(status(2000), 200);
}

TEST_F(HttpTest, ARefusalArrivesThoughTheClientStillSends) {
  Client client(port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n");
  client.send(std::string(4 << 20, 'a'));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the server has answered by now
  EXPECT_EQ(parse_reply(client.read_to_end()).status, 413);
}

TEST_F(HttpTest, AClientThatClosesItsOwnHalfGetsItsAnswer) {
  const std::string text = tiny_->alone("Once upon a time", 60, 0, 1);
  for (const bool streams : {false, true}) {
    const json body{{"prompt", "Once upon a time"}, {"max_tokens", 60}, {"stream", streams}};
    Client client(port());
    client.send(http_request("POST", "/v1/completions", body.dump()));
    client.finish_sending();
    const auto reply = parse_reply(client.read_to_end());
    ASSERT_EQ(reply.status, 200);
    std::string got;
    for (const json& each : streams ? events_of(reply.body) : std::vector{reply.json()})
      got += each["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(got, text) << streams;
  }
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
