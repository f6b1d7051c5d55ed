// Who may ask, how long an answer may take, and what a client hears while it waits.
#include "server/http/access.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::Client;
using fixtures::error_text;
using fixtures::events_of;
using fixtures::http_request;
using fixtures::parse_reply;
using fixtures::RunningServer;
using nlohmann::json;

class AccessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(1); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  std::string key_file(const std::string& text) {
    const auto file = folder_.path() / "keys";
    std::ofstream(file) << text;
    return file.string();
  }
  static json long_text(bool stream) {
    return {{"prompt", "Once"}, {"max_tokens", 250}, {"ignore_eos", true}, {"stream", stream}};
  }

  static fixtures::TinyServed* tiny_;
  fixtures::TempFolder folder_;
};

fixtures::TinyServed* AccessTest::tiny_ = nullptr;

TEST_F(AccessTest, ATrailerBringsNoKey) {
  const RunningServer server(tiny_->model(), {.api_keys = key_file("right-key\n")});
  const auto status = [&](const std::string& header, const std::string& trailer) {
    Client client(server.port());
    client.send(
        "POST /tokenize HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: "
        "chunked\r\n" +
        header + "\r\nf\r\n{\"prompt\": \"a\"}\r\n0\r\n" + trailer + "\r\n");
    return parse_reply(client.read_to_end()).status;
  };
  EXPECT_EQ(status("X-Api-Key: right-key\r\n", "X: y\r\n"), 200);
  EXPECT_EQ(status("", "X-Api-Key: right-key\r\n"), 401) << "it came too late";
}

TEST_F(AccessTest, KeysAreTheLinesOfAFile) {
  const ApiKeys keys = ApiKeys::read(key_file("# of ours\nfirst-key\r\n\nsecond_key\n"));
  EXPECT_TRUE(keys.contains("first-key"));
  EXPECT_TRUE(keys.contains("second_key"));
  for (const char* other : {"", "first-ke", "first-keyy", "# of ours", "FIRST-KEY"})
    EXPECT_FALSE(keys.contains(other)) << other;
  EXPECT_NE(error_text([&] { ApiKeys::read(key_file("# nothing\n")); }).find("no key in it"),
            std::string::npos);
  EXPECT_NE(error_text([&] { ApiKeys::read(key_file("a\nb c\n")); }).find("keys:2: the key has"),
            std::string::npos);
}

TEST_F(AccessTest, WithoutOneOfItsKeysAServerSaysNothing) {
  const RunningServer server(tiny_->model(), {.api_keys = key_file("right-key\n")});
  const auto status = [&](const std::string& path, const std::string& headers) {
    return ask(server.port(), "GET", path, "", headers).status;
  };
  for (const char* path : {"/v1/models", "/metrics", "/slots", "/nothing"})
    EXPECT_EQ(status(path, ""), 401) << path;
  EXPECT_EQ(status("/v1/models", "Authorization: Bearer wrong-key\r\n"), 401);
  EXPECT_EQ(status("/v1/models", "Authorization: Basic right-key\r\n"), 401);
  EXPECT_EQ(status("/v1/models", "Authorization: Bearer right-key\r\n"), 200);
  EXPECT_EQ(status("/v1/models", "authorization: bearer right-key\r\n"), 200);
  EXPECT_EQ(status("/v1/models", "X-Api-Key: right-key\r\n"), 200);
  EXPECT_EQ(status("/health", ""), 200);
  EXPECT_EQ(status("/", ""), 200);
  const auto refused = ask(server.port(), "POST", "/v1/chat/completions", "{}");
  EXPECT_EQ(refused.json()["error"]["type"], "authentication_error");
  EXPECT_EQ(refused.json()["error"]["code"], "invalid_api_key");
  EXPECT_NE(refused.header.find("WWW-Authenticate: Bearer"), std::string::npos);
  EXPECT_EQ(ask(server.port(), "POST", "/v1/messages", "{}").json()["error"]["type"],
            "authentication_error");
}

TEST_F(AccessTest, PagesOfOneOriginMayAskWhereItIsNamed) {
  const std::string preflight =
      "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
  const std::string allow = "Access-Control-Allow-Origin: ";
  {
    const RunningServer closed(tiny_->model());
    EXPECT_EQ(ask(closed.port(), "OPTIONS", "/v1/completions", "", preflight).status, 403);
    EXPECT_EQ(ask(closed.port(), "GET", "/health", "", preflight).header.find(allow),
              std::string::npos);
    const auto status = [&](const std::string& headers) {
      return ask(closed.port(), "POST", "/tokenize", R"({"prompt": "a"})", headers).status;
    };
    // A page may send a POST of plain text to any address, and only not read the answer.
    EXPECT_EQ(status("Origin: https://evil.example\r\nContent-Type: text/plain\r\n"), 403);
    EXPECT_EQ(status("Origin: null\r\n"), 403);
    EXPECT_EQ(status("Origin: http://test\r\n"), 200) << "its own page";
    EXPECT_EQ(status("Origin: https://chat\r\nX-Forwarded-Host: chat\r\n"), 200) << "by a proxy";
  }
  const RunningServer open(tiny_->model(),
                           {.api_keys = key_file("key\n"), .cors = "https://chat.example"});
  EXPECT_EQ(ask(open.port(), "POST", "/v1/completions", "{}",
                "Authorization: Bearer key\r\nOrigin: https://evil.example\r\n")
                .status,
            403);
  const auto asked = ask(open.port(), "OPTIONS", "/v1/completions", "", preflight);
  EXPECT_EQ(asked.status, 204) << "browsers send no key with it";
  EXPECT_EQ(asked.header.find("Content-Length"), std::string::npos) << asked.header;
  EXPECT_NE(asked.header.find(allow + "https://chat.example\r\n"), std::string::npos);
  EXPECT_NE(asked.header.find("Access-Control-Allow-Headers: Authorization, *"), std::string::npos);
  const json body{{"prompt", "Once"}, {"max_tokens", 3}, {"stream", true}};
  for (const std::string& headers : {std::string(), std::string("Authorization: Bearer key\r\n")}) {
    const auto reply = ask(open.port(), "POST", "/v1/completions", body.dump(), headers);
    EXPECT_EQ(reply.status, headers.empty() ? 401 : 200);
    EXPECT_NE(reply.header.find(allow + "https://chat.example\r\n"), std::string::npos);
    EXPECT_EQ(reply.header.find("evil"), std::string::npos);
    Client too_long(open.port());
    too_long.send(
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n");
    const auto refusal = parse_reply(too_long.read_to_end());
    EXPECT_EQ(refusal.status, 413);
    EXPECT_NE(refusal.header.find(allow + "https://chat.example\r\n"), std::string::npos);
  }
  EXPECT_NE(error_text([] { expect_origin("https://a/b"); }).find("--cors"), std::string::npos);
}

TEST_F(AccessTest, ADeadlineEndsAnAnswerAndFreesItsSequence) {
  const RunningServer server(tiny_->model(), {.deadline = .002});
  const auto reply = ask(server.port(), "POST", "/v1/completions", long_text(false).dump());
  EXPECT_EQ(reply.status, 504) << "clients repeat what gets 408 or 409";
  EXPECT_EQ(reply.json()["error"]["code"], "deadline_exceeded");
  const auto stream = ask(server.port(), "POST", "/v1/completions", long_text(true).dump());
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(events_of(stream.body).back()["error"]["code"], "deadline_exceeded");
  json slots;
  for (int i = 0; i < 250 && slots != json::array(); ++i) {
    slots = ask(server.port(), "GET", "/slots").json();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(slots, json::array());
}

TEST_F(AccessTest, WithinItsDeadlineAnAnswerIsAsEver) {
  const RunningServer server(tiny_->model(), {.deadline = 300});
  const auto reply =
      ask(server.port(), "POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 20})");
  EXPECT_EQ(reply.json()["choices"][0]["text"], tiny_->alone("Once", 20, 0, 1));
}

TEST_F(AccessTest, AStreamThatWaitsSaysThatItIsAlive) {
  const RunningServer server(tiny_->model(), {.ping = .001});
  Client first(server.port()), second(server.port());
  first.send(http_request("POST", "/v1/completions", long_text(true).dump()));
  first.read_some(300);  // it has the only sequence
  json body = long_text(true);
  body["max_tokens"] = 3;
  second.send(http_request("POST", "/v1/completions", body.dump(), "Connection: close\r\n"));
  const auto reply = parse_reply(second.read_to_end());
  EXPECT_NE(reply.body.find(": still working\n\n"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(AccessTest, AFullQueueSaysWhenToComeAgain) {
  const RunningServer server(tiny_->model(), {.max_waiting = 0});
  const std::string body = R"({"prompt": "Once", "max_tokens": 3})";
  EXPECT_EQ(ask(server.port(), "POST", "/v1/completions", body).status, 200) << "nobody waits";
  Client first(server.port());
  first.send(http_request("POST", "/v1/completions", long_text(true).dump()));
  first.read_some(300);  // it has the only sequence
  const auto reply = ask(server.port(), "POST", "/v1/completions", body);
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(reply.header.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(reply.json()["error"]["code"], "queue_full");
}

TEST_F(AccessTest, MoreAnswersThanEverWaitAreTheClientsError) {
  const RunningServer server(tiny_->model(), {.max_waiting = 3});
  const auto error = [&](const json& prompt, int n) {
    const json body{{"prompt", prompt}, {"n", n}, {"max_tokens", 2}};
    const auto reply = ask(server.port(), "POST", "/v1/completions", body.dump());
    return reply.status == 200 ? json() : json{reply.status, reply.json()["error"]["param"]};
  };
  const json two{"Once", "Lily"};
  EXPECT_EQ(error("Once", 4), json()) << "one runs, three wait";
  EXPECT_EQ(error(two, 2), json());
  EXPECT_EQ(error("Once", 5), json({400, "n"}));
  EXPECT_EQ(error(two, 3), json({400, "prompt"}));
}

TEST_F(AccessTest, AServerThatOthersReachSaysSo) {
  EXPECT_EQ(RunningServer(tiny_->model(), {.host = "127.0.0.2"}).reach_note(), "");
  EXPECT_NE(RunningServer(tiny_->model(), {.host = "0.0.0.0"}).reach_note().find("--api-keys"),
            std::string::npos);
}

}  // namespace
}  // namespace medusa
