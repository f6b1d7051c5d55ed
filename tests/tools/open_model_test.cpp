#include "tools/run/open_model.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <system_error>
#include <thread>

#include "backbone/cpu/cpu_kernels.h"
#include "base/error.h"
#include "base/process.h"
#include "tests/base/busy_cpus.h"
#include "tools/failure.h"

namespace medusa {
namespace {

BackboneSection section(DtypeKind dtype, CpuIsa isa) {
  BackboneSection config;
  config.device = DeviceKind::Cpu;
  config.dtype = dtype;
  config.cpu = isa;
  config.threads = 1;
  return config;
}

std::string refusal(const BackboneSection& config) {
  try {
    place(config);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Place, AnIsaThatTheCpuLacksIsRefusedWithThoseItHas) {
  for (const DtypeKind dtype : {DtypeKind::Auto, DtypeKind::Bfloat16, DtypeKind::Stored})
    for (const auto& [name, isa] : EnumNames<CpuIsa>::values) {
      const bool quantized = dtype == DtypeKind::Stored;
      const std::string message = refusal(section(dtype, isa));
      if (kernels_for(isa, quantized) != nullptr) {
        EXPECT_EQ(message, "");
        EXPECT_EQ(place(section(dtype, isa)).execution.isa, isa);
        EXPECT_EQ(place(section(dtype, isa)).dtype, at::kBFloat16);
        continue;
      }
      EXPECT_EQ(message.find(std::string("backbone.cpu is '") + name + "', found "), 0U) << message;
      EXPECT_NE(message.find(", expected auto | "), std::string::npos) << message;
      EXPECT_NE(message.find("| plain"), std::string::npos) << message;
      EXPECT_NE(message.find("; use --set backbone.cpu=auto "), std::string::npos) << message;
    }
}

TEST(Place, AnIsaBesideFloat32WouldDoNothing) {
  EXPECT_EQ(refusal(section(DtypeKind::Float32, CpuIsa::Portable)),
            "backbone.cpu is 'plain' and the dtype float32, which LibTorch multiplies, expected "
            "bfloat16, int8 or stored; use --dtype bfloat16, or leave backbone.cpu out");
  EXPECT_EQ(refusal(section(DtypeKind::Float32, CpuIsa::Auto)), "");
}

// With a thousand, every barrier waits until each of them had a CPU: a step takes minutes.
TEST(Place, MoreThreadsThanCpusAreRefused) {
  const size_t cpus = allowed_cpus().size();
  BackboneSection config = section(DtypeKind::Auto, CpuIsa::Auto);
  config.threads = static_cast<int64_t>(cpus);
  EXPECT_EQ(refusal(config), "");
  config.threads = static_cast<int64_t>(cpus) + 1;
  EXPECT_EQ(refusal(config),
            fmt::format("backbone.threads is {}, found {} CPU{} that this process may use, "
                        "expected at most as many threads; lower it, or leave it out for one on "
                        "each",
                        cpus + 1, cpus, cpus == 1 ? "" : "s"));
}

// LibTorch would wait for ever for the threads of its pool.
TEST(Place, ThreadsThatTheSystemRefusesAreAnError) {
  const auto place_without_threads = [] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) _exit(3);
    try {
      place_process(section(DtypeKind::Auto, CpuIsa::Auto));
    } catch (const std::system_error& error) {
      _exit(failure_of(error).message.find("threads: the system gives no more") == 0 ? 2 : 4);
    }
    _exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which nobody asked before
  EXPECT_EXIT(place_without_threads(), testing::ExitedWithCode(2), "");
}

TEST(Place, MakesAThreadForEachCpuThatMayBeUsed) {
  int threads = 0;
  std::thread([&] {  // whose number of threads is its own
    fixtures::stay_on({allowed_cpus().front()});
    at::set_num_threads(3);
    BackboneSection config = section(DtypeKind::Auto, CpuIsa::Auto);
    config.threads.reset();
    place_process(config);
    threads = at::get_num_threads();
  })
      .join();
  EXPECT_EQ(threads, 1);
}

TEST(OpenModel, ACacheWithoutRoomForOneContextIsRefusedWithTheNumbers) {
  BackboneSection config = section(DtypeKind::Auto, CpuIsa::Auto);
  config.model = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  config.chat_template = "plain";
  config.context = 256;
  Model model = open_model(config);
  const int64_t one = model.llama->cache_bytes(256);
  EXPECT_EQ(model.open_target(3, 256).total_rows(), 3 * 256);
  model.cache_mb = static_cast<double>(2 * one) / 1e6 + 1e-6;
  const BackboneTarget target = model.open_target(3, 256);
  EXPECT_EQ(target.num_free_slots(), 3);
  EXPECT_EQ(target.total_rows(), 2 * 256);
  model.cache_mb = 0.001;
  try {
    model.open_target(3, 256);
    ADD_FAILURE() << "not refused";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              fmt::format("backbone.cache_mb is 0.001, found a model whose sequences of 256 tokens "
                          "take {:.1f} MB each, expected room for at least one; raise it, or lower "
                          "backbone.context",
                          std::ceil(static_cast<double>(one) / 1e5) / 10));
    model.cache_mb = std::ceil(static_cast<double>(one) / 1e5) / 10;
    EXPECT_GE(model.open_target(3, 256).total_rows(), 256) << "the number that it said";
  }
}

}  // namespace
}  // namespace medusa
