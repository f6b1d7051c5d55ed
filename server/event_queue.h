// Carries the events of a request's generations from the scheduler's thread to the coroutine that
// writes them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "server/generation.h"

namespace medusa {

struct GenerationEvent {
  size_t choice = 0;
  std::optional<GenerationPiece> piece;
  std::optional<GenerationEnd> end;  // one of both; neither: the client has gone or sends nothing
                                     // more, or it is time for a sign of life
};

/// Lives on the io thread; listeners may be called from any.
class EventQueue : public std::enable_shared_from_this<EventQueue> {
 public:
  explicit EventQueue(boost::asio::any_io_executor executor);

  /// Makes the listener through which what the scheduler tells about this choice becomes its
  /// events.
  std::shared_ptr<GenerationListener> listener(size_t choice);

  /// The next event; an empty one when nothing came for so long, or the client's end came first. On
  /// the io thread.
  boost::asio::awaitable<GenerationEvent> next(std::chrono::steady_clock::duration patience);

  void client_gone();  // on the io thread
  bool is_client_gone() const { return gone_; }

  void client_ended();  // on the io thread: it sends nothing more
  /// Says once whether the client has sent its end, so that something is to be written to it.
  bool take_client_end() { return std::exchange(ended_, false); }

  /// Bytes of pieces that wait to be written.
  size_t waiting_bytes() const { return bytes_; }

 private:
  class Listener;
  void push(GenerationEvent event);

  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer wake_;
  std::deque<GenerationEvent> events_;
  size_t bytes_ = 0;
  bool gone_ = false, ended_ = false;
};

}  // namespace medusa
