// A server over the tiny model for every test, and what its metrics say.
#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "tests/server/served.h"

namespace medusa::fixtures {

class ServerFixture : public testing::Test {
 protected:
  static constexpr int32_t kSequences = 4;
  static void SetUpTestSuite() { tiny_ = new TinyServed(kSequences); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  uint16_t port() const { return server_.port(); }

  nlohmann::json complete(const nlohmann::json& body) const {
    const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  double metric(const std::string& line) const {
    const std::string text = ask(port(), "GET", "/metrics").body;
    const size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size() + 2));
  }

  /// Waits, at most five seconds, until a metric has this value.
  bool reaches(const std::string& line, double value) const {
    for (int i = 0; i < 250; ++i) {
      if (metric(line) == value) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  static inline TinyServed* tiny_ = nullptr;
  RunningServer server_{tiny_->model()};
};

}  // namespace medusa::fixtures
