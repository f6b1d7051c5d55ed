// The scheduler over a decoder that does what the test says.
#include "server/scheduler.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "server/api/api_error.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

/// Runs requests for ever, without a token, until they are cancelled; every step may be made to
/// fail them all.
class EndlessDecoder : public Decoder {
 public:
  explicit EndlessDecoder(int64_t slots) : slots_(slots) {}

  RequestId submit(DecodeRequest) override {
    if (refuses) throw std::runtime_error("refused");
    open_.push_back(next_);
    return next_++;
  }
  std::vector<FinishedRequest> step() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<FinishedRequest> ended;
    if (!fails) return ended;
    for (const RequestId id : std::exchange(open_, {})) {
      FinishedRequest each;
      each.id = id;
      each.error = std::make_exception_ptr(std::runtime_error("pass failed"));
      each.stats.finish = FinishReason::Failed;
      ended.push_back(std::move(each));
    }
    return ended;
  }
  std::optional<DecodeStats> cancel(RequestId id) override {
    if (std::erase(open_, id) == 0) return std::nullopt;
    DecodeStats stats;
    stats.finish = FinishReason::Cancelled;
    return stats;
  }
  const DecodeStats* stats(RequestId id) const override {
    return std::find(open_.begin(), open_.end(), id) == open_.end() ? nullptr : &stats_;
  }
  int64_t num_waiting() const override { return std::max<int64_t>(0, std::ssize(open_) - slots_); }
  int64_t num_running() const override { return std::min(slots_, std::ssize(open_)); }
  int64_t num_free() const override { return slots_ - num_running(); }
  KvUse cache_use() const override { return {}; }
  const DecodeTimes& times() const override { return times_; }
  void cancel_all() override { open_.clear(); }

  std::atomic<bool> fails = false, refuses = false;

 private:
  int64_t slots_;
  RequestId next_ = 0;
  std::vector<RequestId> open_;
  DecodeTimes times_;
  DecodeStats stats_;
};

class Heard : public GenerationListener {
 public:
  void on_piece(GenerationPiece) override {}
  void on_end(GenerationEnd end) override {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
    changed_.notify_all();
  }
  /// Waits for the end, at most five seconds.
  GenerationEnd end() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(5), [&] { return !ends_.empty(); }));
    EXPECT_EQ(ends_.size(), 1U);
    return ends_.empty() ? GenerationEnd{} : ends_.front();
  }
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return !ends_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GenerationEnd> ends_;
};

class SchedulerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(1); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  ServedModel model() {
    const ServedModel tiny = tiny_->model();
    return {.name = tiny.name,
            .tokenizer = tiny.tokenizer,
            .chat = tiny.chat,
            .eos = tiny.eos,
            .context = tiny.context,
            .num_sequences = 2,
            .cache_tokens = 512,
            .decoder = decoder_,
            .settings = tiny.settings,
            .drafters = tiny.drafters,
            .unshared_drafters = tiny.unshared_drafters};
  }
  static GenerationRequest request() {
    GenerationRequest out;
    out.prompt = {1, 2, 3};
    return out;
  }

  static fixtures::TinyServed* tiny_;
  EndlessDecoder decoder_{2};
  ServerMetrics metrics_;
};

fixtures::TinyServed* SchedulerTest::tiny_ = nullptr;

TEST_F(SchedulerTest, MoreThanMayWaitAreRefused) {
  Scheduler scheduler(model(), 3, metrics_);
  std::vector<std::shared_ptr<Heard>> heard;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    heard.push_back(std::make_shared<Heard>());
    try {
      scheduler.submit(request(), heard.back());
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 429);
      ++refused;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that two get their sequences
  }
  EXPECT_EQ(refused, 15) << "two run, three wait";
  EXPECT_EQ(scheduler.state().running, 2);
  EXPECT_EQ(scheduler.state().waiting, 3);
}

TEST_F(SchedulerTest, ACancelledRequestEndsAtOnceAndOnce) {
  Scheduler scheduler(model(), 8, metrics_);
  const auto first = std::make_shared<Heard>(), second = std::make_shared<Heard>();
  const auto ticket = scheduler.submit(request(), first);
  scheduler.submit(request(), second);
  scheduler.cancel(ticket);
  scheduler.cancel(ticket);
  scheduler.cancel(12345);
  EXPECT_EQ(first->end().stats.finish, FinishReason::Cancelled);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first->end();
  EXPECT_FALSE(second->has_ended());
}

TEST_F(SchedulerTest, AFailingPassEndsItsRequestsAndLeavesTheNext) {
  Scheduler scheduler(model(), 8, metrics_);
  decoder_.fails = true;
  const auto lost = std::make_shared<Heard>();
  scheduler.submit(request(), lost);
  const GenerationEnd end = lost->end();
  EXPECT_EQ(end.stats.finish, FinishReason::Failed);
  EXPECT_THROW(std::rethrow_exception(end.error), std::runtime_error);
  decoder_.fails = false;
  const auto next = std::make_shared<Heard>();
  scheduler.cancel(scheduler.submit(request(), next));
  EXPECT_EQ(next->end().stats.finish, FinishReason::Cancelled);
}

TEST_F(SchedulerTest, ARequestThatTheDecoderRefusesEndsAsFailed) {
  Scheduler scheduler(model(), 8, metrics_);
  decoder_.refuses = true;
  const auto heard = std::make_shared<Heard>();
  scheduler.submit(request(), heard);
  EXPECT_EQ(heard->end().stats.finish, FinishReason::Failed);
}

TEST_F(SchedulerTest, ItsEndIsHeardByAllThatRunOrWait) {
  std::vector<std::shared_ptr<Heard>> heard;
  {
    Scheduler scheduler(model(), 8, metrics_);
    for (int i = 0; i < 5; ++i) {
      heard.push_back(std::make_shared<Heard>());
      scheduler.submit(request(), heard.back());
    }
  }
  for (const auto& each : heard) EXPECT_EQ(each->end().stats.finish, FinishReason::Cancelled);
}

}  // namespace
}  // namespace medusa
