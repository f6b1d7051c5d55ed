#include "server/api/aside.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <stdexcept>
#include <thread>

namespace medusa {
namespace {

namespace asio = boost::asio;

TEST(Aside, WorkLeavesItsThreadToOthers) {
  Aside aside;
  asio::io_context io;
  std::promise<void> others_ran;
  std::thread::id worker, behind;
  const std::function<void()> work = [&] {
    worker = std::this_thread::get_id();
    others_ran.get_future().wait();
  };
  const auto coroutine = [&]() -> asio::awaitable<void> {
    co_await aside.run(work);
    behind = std::this_thread::get_id();
  };
  auto done = asio::co_spawn(io, coroutine, asio::use_future);
  asio::post(io, [&] { others_ran.set_value(); });
  io.run();
  done.get();
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_EQ(behind, std::this_thread::get_id());
}

TEST(Aside, WhatTheWorkThrowsComesBack) {
  Aside aside;
  asio::io_context io;
  const std::function<void()> work = [] { throw std::runtime_error("wrong"); };
  const auto coroutine = [&]() -> asio::awaitable<void> { co_await aside.run(work); };
  auto done = asio::co_spawn(io, coroutine, asio::use_future);
  io.run();
  EXPECT_THROW(done.get(), std::runtime_error);
}

}  // namespace
}  // namespace medusa
