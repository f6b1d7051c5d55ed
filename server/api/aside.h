// Work that would hold up the io thread, which the streams of all requests wait for.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>

namespace medusa {

/// A thread that does such work, one after another. It ends with this.
class Aside {
 public:
  /// Calls a function on the thread.
  /// @param work  and what it refers to must live until the coroutine goes on, or until this ends.
  /// @throws  what the function throws.
  boost::asio::awaitable<void> run(const std::function<void()>& work);

 private:
  boost::asio::thread_pool thread_{1};
};

}  // namespace medusa
