#include "backbone/stage_timer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "backbone/llama.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

double of(const StageTimer& timer, ForwardStage stage) {
  return timer.seconds()[static_cast<size_t>(stage)];
}

double sum(const StageTimer& timer) {
  return std::accumulate(timer.seconds().begin(), timer.seconds().end(), 0.0);
}

TEST(StageTimer, EachIntervalBelongsToOneStage) {
  using namespace std::chrono_literals;
  int waits = 0;
  StageTimer timer([&] { ++waits; });
  timer.begin();
  std::this_thread::sleep_for(2ms);
  timer.record(ForwardStage::Qkv);
  std::this_thread::sleep_for(2ms);
  timer.begin();  // what came before counts for nobody
  timer.record(ForwardStage::Down);
  EXPECT_GE(of(timer, ForwardStage::Qkv), 0.002);
  EXPECT_LT(of(timer, ForwardStage::Down), 0.002);
  EXPECT_EQ(sum(timer), of(timer, ForwardStage::Qkv) + of(timer, ForwardStage::Down));
  EXPECT_EQ(waits, 4);
  timer.reset();
  EXPECT_EQ(sum(timer), 0);
}

TEST(StageTimer, PassesReportTheirStagesAndKeepTheirBits) {
  const std::vector<TokenId> text = random_tokens(1, 20);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      Llama llama(tiny_weights(1, tiny_config(), dtype), kernels);
      KvCache cache = llama.make_cache(1, 64);
      const int32_t slot = cache.open();
      const Segment segment{slot, text, {}};
      const auto run = [&] { return llama.logits(llama.forward({&segment, 1}, cache)).clone(); };
      const at::Tensor before = run();
      StageTimer timer;
      llama.set_timer(&timer);
      const auto began = std::chrono::steady_clock::now();
      EXPECT_TRUE(at::equal(run(), before));
      const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - began;
      EXPECT_LE(sum(timer), whole.count());
      for (const ForwardStage stage :
           {ForwardStage::Embedding, ForwardStage::AttentionNorm, ForwardStage::Qkv,
            ForwardStage::Attention, ForwardStage::Output, ForwardStage::MlpNorm,
            ForwardStage::GateUp, ForwardStage::Down, ForwardStage::FinalNorm,
            ForwardStage::LmHead})
        EXPECT_GT(of(timer, stage), 0) << static_cast<int>(stage);
      for (const ForwardStage stage :
           {ForwardStage::Rope, ForwardStage::CacheWrite, ForwardStage::Activation})
        EXPECT_EQ(of(timer, stage) > 0, !llama.uses_pool()) << static_cast<int>(stage);
      llama.set_timer(nullptr);
      timer.reset();
      run();
      EXPECT_EQ(sum(timer), 0);
    }
}

TEST(StageTimer, WeightsAreCountedWhereTheyAreRead) {
  const ModelConfig config = tiny_config();  // H 64, A 4, G 2, D 32, I 96, V 130, two layers
  for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
    const Llama llama(tiny_weights(1, config, at::kBFloat16), kernels);
    const auto bytes = llama.weight_bytes();
    const auto at = [&](ForwardStage stage) { return bytes[static_cast<size_t>(stage)]; };
    EXPECT_EQ(at(ForwardStage::Qkv), 2 * 2 * (4 + 2 * 2) * 32 * 64);
    EXPECT_EQ(at(ForwardStage::Output), 2 * 2 * 4 * 32 * 64);
    EXPECT_EQ(at(ForwardStage::GateUp), 2 * 2 * 2 * 96 * 64);
    EXPECT_EQ(at(ForwardStage::Down), 2 * 2 * 96 * 64);
    const int64_t padded = llama.uses_pool() ? 160 : 130;  // whole pairs of tiles
    EXPECT_EQ(at(ForwardStage::LmHead), 2 * padded * 64);
    EXPECT_EQ(at(ForwardStage::Embedding) + at(ForwardStage::Rope) + at(ForwardStage::Attention),
              0);
  }
}

}  // namespace
}  // namespace medusa
