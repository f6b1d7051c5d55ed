// Models on contexts of their own in one process.
#include "backbone/execution_context.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <thread>

#include "backbone/cpu/threads/thread_pool.h"
#include "infer/backbone_target.h"
#include "infer/drafter.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "tests/backbone/cpu_isas.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// A model with a decoder, and the texts of four sequences that it decodes at once.
class Speaker {
 public:
  Speaker(uint64_t seed, const ExecutionContext& execution)
      : llama_(tiny_weights(seed, tiny_config(), at::kBFloat16), execution),
        target_(llama_, 4, 128) {}

  std::vector<std::vector<TokenId>> texts() {
    HostDecoder decoder(target_, std::make_shared<GreedyRule>(),
                        [] { return std::make_unique<NoneDrafter>(); });
    std::vector<std::vector<TokenId>> texts(4);
    for (size_t i = 0; i < texts.size(); ++i) {
      DecodeRequest request{random_tokens(i, 20), {60, 64, {}}, Random(i), {}};
      request.emit = [&text = texts[i]](const EmittedToken& token) {
        text.push_back(token.id);
        return true;
      };
      decoder.submit(std::move(request));
    }
    decoder.drain();
    return texts;
  }

  Llama& llama() { return llama_; }

 private:
  Llama llama_;
  BackboneTarget target_;
};

TEST(ExecutionContext, HasTheThreadsAskedForAndStartsNoOthers) {
  std::thread([] {}).join();  // TSan starts a thread of its own beside the first one
  const int64_t before = threads_of_process();
  {
    Speaker one(1, {}), three(2, ExecutionContext({.threads = 3}));
    EXPECT_EQ(threads_of_process(), before + 2);
    three.texts();
    one.texts();
    EXPECT_EQ(threads_of_process(), before + 2);
    for (const auto& [speaker, count] : {std::pair{&one, 1}, std::pair{&three, 3}}) {
      const ExecutionContext execution = speaker->llama().execution();  // shares the threads
      EXPECT_EQ(execution.num_threads(), count);
      std::vector<std::thread::id> ran(static_cast<size_t>(count));
      execution.pool()->run(
          [&](int thread) { ran[static_cast<size_t>(thread)] = std::this_thread::get_id(); });
      EXPECT_EQ(std::set(ran.begin(), ran.end()).size(), ran.size());
      EXPECT_EQ(ran.front(), std::this_thread::get_id());
    }
  }
  EXPECT_EQ(threads_of_process(), before);
}

TEST(ExecutionContext, TwoModelsWithOtherThreadsAndIsasEachSayAtOnceWhatTheySayAlone) {
  const ExecutionContext first({.threads = 1, .isa = CpuIsa::Portable}), second({.threads = 3});
  const auto alone_1 = Speaker(1, first).texts(), alone_2 = Speaker(2, second).texts();
  EXPECT_NE(alone_1, alone_2);
  Speaker one(1, first), two(2, second);
  EXPECT_STREQ(one.llama().kernels(), kernels_for(CpuIsa::Portable, false)->name);
  EXPECT_STREQ(two.llama().kernels(), kernels_for(CpuIsa::Auto, false)->name);
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::vector<std::vector<TokenId>> said_1, said_2;
    std::thread beside([&] { said_1 = one.texts(); });
    said_2 = two.texts();
    beside.join();
    EXPECT_EQ(said_1, alone_1);
    EXPECT_EQ(said_2, alone_2);
  }
}

TEST(ExecutionContext, TwoModelsMayShareOne) {
  const auto alone_1 = Speaker(1, {}).texts(), alone_2 = Speaker(2, {}).texts();
  const int64_t before = threads_of_process();
  const ExecutionContext shared({.threads = 2});
  Speaker one(1, shared), two(2, shared);
  EXPECT_EQ(threads_of_process(), before + 1);
  std::vector<std::vector<TokenId>> said_1, said_2;
  std::thread beside([&] { said_1 = one.texts(); });  // they take turns, pass by pass
  said_2 = two.texts();
  beside.join();
  EXPECT_EQ(said_1, alone_1);
  EXPECT_EQ(said_2, alone_2);
}

}  // namespace
}  // namespace medusa
