#include "tests/speed/step_speed.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/base/error_text.h"
#include "tests/speed/gemm_speed.h"
#include "tests/speed/medusa_speed.h"

namespace medusa {
namespace {

// So that the program is known to work before a GPU is at hand.
TEST(StepSpeed, EveryStepOfATinyModelIsTimed) {
  const StepSpeed speed =
      measure_step_speed(speed_shape("tiny"), at::kBFloat16, at::kCPU, /*samples=*/1, /*seed=*/1);
  std::vector<std::string> names;
  for (const SpeedRow& row : speed.rows) {
    names.push_back(row.name);
    EXPECT_GT(row.ms.low, 0) << row.name;
    EXPECT_GE(row.ms.middle, row.host_ms) << row.name;
    EXPECT_LT(row.difference, 0.1) << row.name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"copy of 32 MB", "product of 512 x 512",
                                      "plain: 1 row behind 16", "kernels: 1 row behind 16",
                                      "plain: 16 rows behind 16", "kernels: 16 rows behind 16",
                                      "plain: 1 row behind 48", "kernels: 1 row behind 48",
                                      "plain: 16 rows behind 48", "kernels: 16 rows behind 48"}));
  // Two layers of (64 + 2 32 + 64 + 3 96) rows of 64, and 256 of the LM head; 2 bytes each.
  EXPECT_EQ(speed.weight_bytes, 2.0 * 64 * (2 * (64 + 2 * 32 + 64 + 3 * 96) + 256));
}

TEST(StepSpeed, TheTableSetsStepsBesideTheCopy) {
  StepSpeed speed{"some", "cuda:0", "bfloat16", "CUDA", 15e9, {}};
  speed.rows.push_back({"copy of 1024 MB", {1, 1, 1}, 0.01, 3e9, 0, 0, false});
  speed.rows.push_back({"product of 8192 x 8192", {2, 2, 2.5}, 0.01, 0, 1.1e12, 0, false});
  speed.rows.push_back({"graph: 1 row behind 512", {9.5, 10, 10.5}, 9, 15e9, 0, 0.02, true});
  EXPECT_EQ(
      step_speed_table(speed),
      "some, cuda:0, bfloat16: a step reads 15.000 GB of weights; plain: LibTorch, kernels: "
      "CUDA\n"
      "                                     ms           quartiles   host ms  apart   rate\n"
      "copy of 1024 MB                   1.000      1.000 to 1.000     0.010          3000.0 "
      "GB/s\n"
      "product of 8192 x 8192            2.000      2.000 to 2.500     0.010          550.0 "
      "TFLOP/s\n"
      "graph: 1 row behind 512          10.000     9.500 to 10.500     9.000  0.020   weights "
      "and cache at 1500.0 GB/s, 50.0 % of the copy\n");
}

TEST(MedusaSpeed, ATableSetsTreesBesideThePlainStep) {
  const MedusaSpeed speed{HeadInput::Root, RuleKind::Typical, 512, {1, 8}, {2, 2.5}};
  EXPECT_EQ(medusa_speed_table("some", {speed}),
            "some: ms of a captured step, and times the plain one\n"
            "heads    rule      context                1                8 nodes\n"
            "root     typical       512    2.000 (1.00x)    2.500 (1.25x)\n");
}

TEST(GemmSpeed, ATableSetsTheRateOfTheWeightBesideTheLibrary) {
  GemmSpeed speed{"qkv", 768, 512, 8, {1.5, 2, 2.5}, {3, 4, 5}, 2.0 * 768 * 512};
  EXPECT_EQ(gemm_speed_table("some", {speed}),
            "some, bfloat16\n"
            "GEMM              weight  rows       us         quartiles      GB/s  LibTorch us\n"
            "qkv            768 x 512     8     2.00      1.50 to 2.50       393         4.00\n");
}

TEST(GpuSpeed, WhatWantsAGpuIsRefusedWithoutOne) {
  const SpeedShape shape = speed_shape("tiny");
  EXPECT_EQ(fixtures::error_text([&] { measure_gemm_speed(shape, at::kCPU, 1); }),
            "--only: found gemms, which want a GPU and a program with CUDA kernels, expected "
            "--device cuda and a program made where nvcc is; leave gemms out");
  EXPECT_EQ(fixtures::error_text(
                [&] { measure_medusa_speed(shape, at::kBFloat16, at::kCPU, 1, /*seed=*/1); }),
            "--only: found medusa, whose captured steps want a GPU and a program with CUDA "
            "kernels, expected --device cuda and a program made where nvcc is; leave medusa out");
}

TEST(StepSpeed, ShapesAreThoseOfTheModels) {
  const ModelConfig config = speed_shape("llama-3-8b").config;
  const int64_t layer =
      config.hidden_size * (2 * config.num_heads + 2 * config.num_kv_heads) * config.head_size +
      3 * config.hidden_size * config.mlp_size;
  EXPECT_NEAR(
      static_cast<double>(config.num_layers * layer + 2 * config.vocab_size * config.hidden_size),
      8.03e9, 0.005e9);  // parameters, but for the norms
}

TEST(StepSpeed, AnUnknownShapeIsNamed) {
  EXPECT_EQ(fixtures::error_text([] { speed_shape("llama"); }),
            "--shape: found 'llama', expected tiny, smollm2-135m, llama-2-7b or llama-3-8b; choose "
            "one of these");
}

}  // namespace
}  // namespace medusa
