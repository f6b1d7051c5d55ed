// Runs the generations of one request, and sends their answer while they grow.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "server/answer_writer.h"
#include "server/completion_request.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/scheduler.h"

namespace medusa {

/// Answers one request: a stream of events, or a whole answer. Whatever ends this coroutine (an
/// error, a client that left, a slow reader) cancels the generations before the next step.
/// @throws ApiError  nothing has been sent, and there is no answer. What goes wrong later ends the
///                   stream with an event.
boost::asio::awaitable<void> run_answer(Scheduler& scheduler, ServerMetrics& metrics,
                                        const CompletionRequest& request, AnswerWriter& writer,
                                        HttpAnswer& answer);

}  // namespace medusa
