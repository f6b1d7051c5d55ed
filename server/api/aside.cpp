#include "server/api/aside.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace medusa {

namespace asio = boost::asio;

asio::awaitable<void> Aside::run(const std::function<void()>& work) {
  const auto on_thread = [&work]() -> asio::awaitable<void> {
    work();
    co_return;
  };
  co_await asio::co_spawn(thread_, on_thread, asio::use_awaitable);
}

}  // namespace medusa
