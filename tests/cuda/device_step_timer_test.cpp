#include "runtime/measure/device_step_timer.h"

#include "backbone/llama.h"
#include "tests/cuda/device_models.h"
#include "tests/cuda/every_device.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

class DeviceStepTimer : public OnEveryDevice {
 protected:
  std::optional<StepTimes> time(Llama& llama, HeadInput input, const InferConfig& settings = {}) {
    const MedusaHeads heads = random_heads(heads_config(input, HeadOutput::Shared), cpu_weights_);
    BackboneTarget target(llama, 1, 64);
    const std::vector<RankPath> paths{{0}, {1}, {0, 0}};
    const auto times =
        time_device_steps(target, heads, settings, paths, std::vector<TokenId>{1, 2, 3}, {1, 2, 4},
                          1, loop_kernels());
    EXPECT_EQ(target.num_free_slots(), 1);
    return times;
  }

  Weights cpu_weights_ = tiny_weights(1, device_config(), at::kBFloat16);
};

TEST_P(DeviceStepTimer, TimesEachSizeInTheLoopThatWillDecode) {
  Llama llama = llama_on_kernels(device_weights(1, device_config(), device()));
  const auto times = time(llama, HeadInput::Root);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->sizes, (std::vector<int32_t>{1, 2, 4}));
  ASSERT_EQ(times->step_ms.size(), 3U);
  for (const double ms : times->step_ms) EXPECT_GT(ms, 0);
}

TEST_P(DeviceStepTimer, LeavesStepsThatRunInTheHostsLoopToTheHostDecoder) {
  Llama llama = llama_on_kernels(device_weights(1, device_config(), device()));
  EXPECT_FALSE(time(llama, HeadInput::Prefix));
  InferConfig host;
  host.graphs = false;
  EXPECT_FALSE(time(llama, HeadInput::Root, host));
  InferConfig rejection;
  rejection.sampling.temperature = 0.7;
  rejection.rule = RuleKind::Rejection;
  EXPECT_FALSE(time(llama, HeadInput::Root, rejection));
  Llama plain(cpu_weights_);
  EXPECT_FALSE(time(plain, HeadInput::Root));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceStepTimer, every_device(), device_name);

}  // namespace
}  // namespace medusa
