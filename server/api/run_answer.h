// Runs the generations of one request, and sends their answer while they grow.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>

#include "server/api/answer_writer.h"
#include "server/api/aside.h"
#include "server/api/completion_request.h"
#include "server/http/access_log.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "server/scheduler.h"

namespace medusa {

struct AnswerTimes {
  std::chrono::milliseconds ping{15000};       // of silence, after which a stream says a word
  std::chrono::milliseconds deadline{0};       // for the whole answer; 0: none
  std::chrono::steady_clock::time_point came;  // the request
};

/// What all answers share.
struct AnswerParts {
  Scheduler& scheduler;
  ServerMetrics& metrics;
  Aside& aside;
};

/// Answers one request: a stream of events, or a whole answer. Whatever ends this coroutine (an
/// error, a client that left, a slow reader) cancels the generations before the next step.
/// @param log        gets its part generated once the request was taken.
/// @throws ApiError  nothing has been sent, and there is no answer; 504: the deadline has passed.
///                   What goes wrong later ends the stream with an event.
boost::asio::awaitable<void> run_answer(AnswerParts parts, const CompletionRequest& request,
                                        AnswerWriter& writer, const AnswerTimes& times,
                                        HttpAnswer& answer, LoggedRequest& log);

}  // namespace medusa
