// The log of requests: a line of JSON for each.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "server/api/api_error.h"
#include "server/generation.h"

namespace medusa {

/// What is known of a request when its answer has ended.
struct LoggedRequest {
  /// The generations of an answer, all together.
  struct Generated {
    int64_t prompt_tokens = 0, tokens = 0;
    std::optional<double> first_token_seconds;
    DecodeStats stats;                 // sums
    std::vector<std::string> reasons;  // of each that ended
  };

  std::string method, path, traceparent;
  int status = 0;  // 0: the client left before it got one
  double seconds = 0;
  bool client_left = false;
  std::string error_field, error_code;  // of a refusal
  std::string bug;                      // what an answer of status 500 says
  std::optional<Generated> generated;   // of requests for a text
  std::vector<std::string> prompts;     // where they are asked for
};

/// Notes what a line says of a refusal; of status 500 that it is a bug, and which.
void note_refusal(const ApiError& error, LoggedRequest& log);

/// Thread safety: one thread at a time.
class AccessLog {
 public:
  /// @param place  a file, which is added to, or "-": stdout; empty: nothing is written.
  /// @throws UserError  the file cannot be opened.
  explicit AccessLog(const std::string& place);

  /// Never throws, and waits for nobody: lines that nobody takes are lost, with one note on stderr.
  /// Only a line longer than a pipe's page may wait for the rest of it to be read from stdout.
  void write(const LoggedRequest& request);

 private:
  bool send(std::string line);

  std::string place_;
  std::unique_ptr<Descriptor> file_;  // null: stdout, or none
  bool has_failed_ = false;
  bool is_torn_ = false;  // the last line was written in part
};

/// The line, without its end. Nothing in it comes from a request's body but the prompts.
std::string log_line(const LoggedRequest& request, std::chrono::system_clock::time_point now);

/// The header traceparent where it has the form of W3C's Trace Context; else empty.
std::string valid_traceparent(std::string_view header);

}  // namespace medusa
