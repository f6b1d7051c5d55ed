// What a server says before its model is loaded.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temp_folder.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using nlohmann::json;

TEST(Loading, EverythingIsUnavailableUntilThereIsAModel) {
  fixtures::TinyServed tiny(1);
  Server server("tiny", {.port = 0, .cors = "*"});
  const std::string body = json{{"prompt", "Once upon a time"}, {"max_tokens", 9}}.dump();
  const auto post = [&](const char* path) { return ask(server.port(), "POST", path, body); };
  for (const auto& reply :
       {ask(server.port(), "GET", "/health"), post("/v1/completions"),
        ask(server.port(), "GET", "/v1/models"), ask(server.port(), "GET", "/metrics"),
        ask(server.port(), "GET", "/")}) {
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.header.find("Retry-After: 1"), std::string::npos) << reply.header;
    EXPECT_NE(reply.header.find("Access-Control-Allow-Origin: *"), std::string::npos);
    EXPECT_EQ(reply.json()["error"]["code"], "loading");
  }
  EXPECT_NE(ask(server.port(), "GET", "/").header.find("Refresh: 1"), std::string::npos);
  EXPECT_EQ(post("/v1/messages").json()["type"], "error");
  EXPECT_EQ(ask(server.port(), "GET", "/nothing").status, 404);
  EXPECT_EQ(ask(server.port(), "GET", "/v1/completions").status, 405);
  server.serve(tiny.model());
  EXPECT_EQ(ask(server.port(), "GET", "/health").json()["status"], "ok");
  EXPECT_EQ(ask(server.port(), "GET", "/").status, 200);
  EXPECT_EQ(post("/v1/completions").json()["choices"][0]["text"],
            tiny.alone("Once upon a time", 9, 0, 1));
  const std::string metrics = ask(server.port(), "GET", "/metrics").body;
  EXPECT_NE(metrics.find("http_requests_total{status=\"503\"} 7"), std::string::npos) << metrics;
}

TEST(Loading, KeysAreAskedForFirst) {
  const fixtures::TempFolder folder;
  std::ofstream(folder / "keys") << "a-key\n";
  const Server server("tiny", {.port = 0, .api_keys = (folder / "keys").string()});
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models").status, 401);
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models", "", "X-Api-Key: a-key\r\n").status, 503);
  EXPECT_EQ(ask(server.port(), "GET", "/health").status, 503);
}

TEST(Loading, AServerWithoutAModelEnds) {
  Server server("tiny", {.port = 0});
  fixtures::Client waits(server.port());  // for nothing
  server.stop();
  server.run(false);
  EXPECT_EQ(waits.read_to_end(), "");
}

}  // namespace
}  // namespace medusa
