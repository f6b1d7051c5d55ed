#include "backbone/part_clock.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "backbone/llama.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

double of(const PartClock& clock, PassPart part) {
  return clock.seconds()[static_cast<size_t>(part)];
}

double sum(const PartClock& clock) {
  return std::accumulate(clock.seconds().begin(), clock.seconds().end(), 0.0);
}

TEST(PartClock, EachLapBelongsToOnePart) {
  using namespace std::chrono_literals;
  int waits = 0;
  PartClock clock([&] { ++waits; });
  clock.begin();
  std::this_thread::sleep_for(2ms);
  clock.lap(PassPart::Qkv);
  std::this_thread::sleep_for(2ms);
  clock.begin();  // what came before counts for nobody
  clock.lap(PassPart::Down);
  EXPECT_GE(of(clock, PassPart::Qkv), 0.002);
  EXPECT_LT(of(clock, PassPart::Down), 0.002);
  EXPECT_EQ(sum(clock), of(clock, PassPart::Qkv) + of(clock, PassPart::Down));
  EXPECT_EQ(waits, 4);
  clock.reset();
  EXPECT_EQ(sum(clock), 0);
}

TEST(PartClock, PassesReportTheirPartsAndKeepTheirBits) {
  const std::vector<TokenId> text = random_tokens(1, 20);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Plain, Kernels::Auto}) {
      Llama llama(tiny_weights(1, tiny_config(), dtype), kernels);
      KvCache cache = llama.make_cache(1, 64);
      const int32_t slot = cache.open();
      const Segment segment{slot, text, {}};
      const auto run = [&] { return llama.logits(llama.forward({&segment, 1}, cache)).clone(); };
      const at::Tensor before = run();
      PartClock clock;
      llama.set_clock(&clock);
      const auto began = std::chrono::steady_clock::now();
      EXPECT_TRUE(at::equal(run(), before));
      const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - began;
      EXPECT_LE(sum(clock), whole.count());
      for (const PassPart part :
           {PassPart::Embedding, PassPart::AttentionNorm, PassPart::Qkv, PassPart::Attention,
            PassPart::Output, PassPart::MlpNorm, PassPart::GateUp, PassPart::Down,
            PassPart::FinalNorm, PassPart::LmHead})
        EXPECT_GT(of(clock, part), 0) << static_cast<int>(part);
      for (const PassPart part : {PassPart::Rope, PassPart::CacheWrite, PassPart::Activation})
        EXPECT_EQ(of(clock, part) > 0, !llama.uses_pool()) << static_cast<int>(part);
      llama.set_clock(nullptr);
      clock.reset();
      run();
      EXPECT_EQ(sum(clock), 0);
    }
}

TEST(PartClock, WeightsAreCountedWhereTheyAreRead) {
  const ModelConfig config = tiny_config();  // H 64, A 4, G 2, D 32, I 96, V 130, two layers
  for (const Kernels kernels : {Kernels::Plain, Kernels::Auto}) {
    const Llama llama(tiny_weights(1, config, at::kBFloat16), kernels);
    const auto bytes = llama.weight_bytes();
    const auto at = [&](PassPart part) { return bytes[static_cast<size_t>(part)]; };
    EXPECT_EQ(at(PassPart::Qkv), 2 * 2 * (4 + 2 * 2) * 32 * 64);
    EXPECT_EQ(at(PassPart::Output), 2 * 2 * 4 * 32 * 64);
    EXPECT_EQ(at(PassPart::GateUp), 2 * 2 * 2 * 96 * 64);
    EXPECT_EQ(at(PassPart::Down), 2 * 2 * 96 * 64);
    const int64_t padded = llama.uses_pool() ? 160 : 130;  // whole pairs of tiles
    EXPECT_EQ(at(PassPart::LmHead), 2 * padded * 64);
    EXPECT_EQ(at(PassPart::Embedding) + at(PassPart::Rope) + at(PassPart::Attention), 0);
  }
}

}  // namespace
}  // namespace medusa
