#include "server/event_queue.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace medusa {

class EventQueue::Listener : public GenerationListener {
 public:
  Listener(std::shared_ptr<EventQueue> queue, size_t choice)
      : queue_(std::move(queue)), choice_(choice) {}

  void on_piece(GenerationPiece piece) override { send({choice_, std::move(piece), {}}); }
  void on_end(GenerationEnd end) override { send({choice_, {}, std::move(end)}); }

 private:
  void send(GenerationEvent event) {
    boost::asio::post(queue_->executor_, [queue = queue_, event = std::move(event)]() mutable {
      queue->push(std::move(event));
    });
  }

  std::shared_ptr<EventQueue> queue_;
  size_t choice_;
};

EventQueue::EventQueue(boost::asio::any_io_executor executor)
    : executor_(executor), wake_(executor) {}

std::shared_ptr<GenerationListener> EventQueue::listener(size_t choice) {
  return std::make_shared<Listener>(shared_from_this(), choice);
}

void EventQueue::push(GenerationEvent event) {
  if (event.piece) bytes_ += event.piece->bytes();
  events_.push_back(std::move(event));
  wake_.cancel();
}

void EventQueue::client_gone() {
  gone_ = true;
  wake_.cancel();
}

void EventQueue::client_ended() {
  ended_ = true;
  wake_.cancel();
}

boost::asio::awaitable<GenerationEvent> EventQueue::next(
    std::chrono::steady_clock::duration patience) {
  if (events_.empty() && !gone_ && !ended_) {
    boost::system::error_code woken;
    wake_.expires_after(patience);
    co_await wake_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
  }
  if (events_.empty() || gone_) co_return GenerationEvent{};
  GenerationEvent event = std::move(events_.front());
  events_.pop_front();
  if (event.piece) bytes_ -= event.piece->bytes();
  co_return event;
}

}  // namespace medusa
