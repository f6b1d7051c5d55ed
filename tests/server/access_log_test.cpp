// The log of requests: what stands in it, and what does not.
#include "server/http/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::Client;
using fixtures::http_request;
using fixtures::RunningServer;
using nlohmann::json;

constexpr const char* kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class AccessLogTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(1); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  std::string file() const { return (folder_ / "log").string(); }
  std::vector<json> lines() const {
    std::vector<json> out;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
    return out;
  }

  static fixtures::TinyServed* tiny_;
  fixtures::TempFolder folder_;
};

fixtures::TinyServed* AccessLogTest::tiny_ = nullptr;

TEST_F(AccessLogTest, EachRequestIsALine) {
  {
    const RunningServer server(tiny_->model(), {.log = file()});
    const json body{{"prompt", "Lily and a secret"}, {"max_tokens", 9}, {"n", 2}};
    ask(server.port(), "POST", "/v1/completions", body.dump(),
        std::string("traceparent: ") + kTrace + "\r\n");
    ask(server.port(), "POST", "/v1/completions",
        R"({"prompt": "secret", "temperature": "secret"})", "traceparent: secret\r\n");
    ask(server.port(), "GET", "/nothing\"");
    Client leaver(server.port());
    leaver.send(http_request(
        "POST", "/v1/completions",
        json{{"prompt", "Once"}, {"max_tokens", 250}, {"ignore_eos", true}, {"stream", true}}
            .dump()));
    leaver.read_some(300);
  }
  const auto all = lines();
  ASSERT_EQ(all.size(), 4U);
  const json& text = all[0];
  EXPECT_EQ(text["method"], "POST");
  EXPECT_EQ(text["path"], "/v1/completions");
  EXPECT_EQ(text["status"], 200);
  EXPECT_EQ(text["traceparent"], kTrace);
  EXPECT_EQ(text["tokens"], 18);
  EXPECT_EQ(text["finish_reasons"], json({"length", "length"}));
  EXPECT_GT(text["steps"], 0);
  EXPECT_GE(text["seconds"], text["first_token_seconds"]);
  EXPECT_EQ(text["time"].get<std::string>().size(), std::string("2026-01-01T00:00:00.000Z").size());
  EXPECT_EQ(all[1]["status"], 400);
  EXPECT_EQ(all[1]["error_field"], "temperature");
  EXPECT_FALSE(all[1].contains("traceparent"));
  EXPECT_EQ(all[2]["status"], 404);
  EXPECT_EQ(all[3]["status"], 200);
  const std::string log = read_file(file());
  EXPECT_EQ(log.find("secret"), std::string::npos) << "nothing of a request's body";
  const auto mode = std::filesystem::status(file()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(AccessLogTest, PromptsStandInItWhereTheyAreAskedFor) {
  {
    const RunningServer server(tiny_->model(), {.log = file(), .log_prompts = true});
    const json body{{"prompt", {"Lily", "Tom", "Tom"}}, {"max_tokens", 2}, {"n", 2}};
    ask(server.port(), "POST", "/v1/completions", body.dump());
  }
  const auto all = lines();
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0]["prompts"].size(), 3U);
  EXPECT_NE(all[0]["prompts"][0].get<std::string>().find("Lily"), std::string::npos);
}

TEST_F(AccessLogTest, ATextThatWasRefusedHasNoTokens) {
  {
    const RunningServer server(tiny_->model(), {.max_waiting = 0, .log = file()});
    const auto reply = ask(server.port(), "POST", "/v1/completions",
                           R"({"prompt": "a", "max_tokens": 2, "n": 9})");
    EXPECT_EQ(reply.status, 400);
  }
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0]["status"], 400);
  EXPECT_FALSE(lines()[0].contains("finish_reasons"));
}

TEST_F(AccessLogTest, WhatNobodyTakesIsLostAndTheNextLinesAreWhole) {
  const std::string fifo = (folder_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  AccessLog log(fifo);
  LoggedRequest large;
  large.prompts = {std::string(9000, 'a')};  // more than a pipe takes whole or not at all
  for (int i = 0; i < 20; ++i) log.write(large);
  std::string text;
  char buffer[65536];
  const auto drain = [&] {
    for (ssize_t got; (got = ::read(reader, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
  };
  drain();
  LoggedRequest last;
  last.path = "/last";
  log.write(last);
  drain();
  ::close(reader);
  std::istringstream in(text);
  std::vector<bool> whole;
  for (std::string line; std::getline(in, line);)
    whole.push_back(!json::parse(line, nullptr, false).is_discarded());
  EXPECT_LT(whole.size(), 21U) << "some were lost";
  EXPECT_LE(std::count(whole.begin(), whole.end(), false), 1) << "the one that was cut off";
  EXPECT_TRUE(whole.back());
  EXPECT_NE(text.find("/last"), std::string::npos);
}

TEST_F(AccessLogTest, AClientThatLeftIsSaidToHaveLeft) {
  {
    const RunningServer server(tiny_->model(), {.log = file()});
    Client client(server.port());
    client.send(
        http_request("POST", "/v1/completions",
                     json{{"prompt", "Once"}, {"max_tokens", 250}, {"ignore_eos", true}}.dump()));
    client.close();
    for (int i = 0; i < 250 && lines().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0]["client_left"], true);
  EXPECT_EQ(lines()[0]["status"], 0);
}

TEST_F(AccessLogTest, AnAnswerThatWasCutOffHasItsSteps) {
  json line;
  for (const double deadline : {.01, .03, .1, .3, 1.}) {  // until some tokens came before it
    std::filesystem::remove(file());
    {
      const RunningServer server(tiny_->model(), {.deadline = deadline, .log = file()});
      ask(server.port(), "POST", "/v1/completions",
          json{{"prompt", "Once"}, {"max_tokens", 250}, {"ignore_eos", true}, {"stream", true}}
              .dump());
    }
    ASSERT_EQ(lines().size(), 1U);
    line = lines()[0];
    if (line.contains("error_code") && line["tokens"] > 0) break;
  }
  EXPECT_EQ(line["error_code"], "deadline_exceeded");
  ASSERT_GT(line["tokens"], 0);
  EXPECT_GT(line["steps"], 0);
  EXPECT_GE(line["tokens"], line["steps"]);
  EXPECT_EQ(line["finish_reasons"], json::array());
}

TEST(AccessLog, AFileThatCannotBeWrittenIsRefusedAtTheStart) {
  EXPECT_NE(fixtures::error_text([] { AccessLog("/nowhere/log"); }).find("--log /nowhere/log"),
            std::string::npos);
}

TEST(AccessLog, AFileOfSomethingElseIsNotWrittenTo) {
  const fixtures::TempFolder folder;
  const std::string file = (folder / "heads.safetensors").string();
  write_file(file, "{\"a\": 1}");
  EXPECT_EQ(fixtures::error_text([&] { AccessLog log(file); }),
            "--log " + file +
                ": the file holds something else, expected a new one or the log of a "
                "server before; choose another file, or remove this one");
  EXPECT_EQ(read_file(file), "{\"a\": 1}");
  for (const char* name : {"new.jsonl", "new.jsonl"}) {  // its own lines are gone on with
    AccessLog log((folder / name).string());
    LoggedRequest request;
    request.path = "/health";
    log.write(request);
  }
  const std::string lines = read_file(folder / "new.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

/// As behind a full disk, where somebody empties the log.
TEST(AccessLog, AnEmptiedLogBeginsWithALineThoughTheLastOneWasTorn) {
  const fixtures::TempFolder folder;
  const std::string file = (folder / "log").string();
  AccessLog log(file);
  LoggedRequest large;
  large.prompts = {std::string(900, 'a')};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  log.write(large);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_EQ(std::filesystem::file_size(file), 100U);
  std::filesystem::resize_file(file, 0);
  log.write(large);
  EXPECT_TRUE(read_file(file).starts_with("{\"time\""));
  write_file(file, "\n" + read_file(file));  // as an earlier program left it
  EXPECT_EQ(fixtures::error_text([&] { AccessLog again(file); }), "(no error)");
}

TEST(AccessLog, ATraceparentHasItsForm) {
  EXPECT_EQ(valid_traceparent(kTrace), kTrace);
  for (const char* wrong : {"", "00", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"})
    EXPECT_EQ(valid_traceparent(wrong), "") << wrong;
}

}  // namespace
}  // namespace medusa
