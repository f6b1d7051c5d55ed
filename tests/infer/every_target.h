// What the tests of BackboneTarget run on: a small random Llama in every arithmetic of this
// machine.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"
#include "heads/tree/choice_tree.h"
#include "infer/backbone_target.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/backbone/tiny_model.h"

namespace medusa::fixtures {

constexpr int64_t kRows = 256;  // of a target's cache

/// What a model computes with.
struct Setup {
  const char* name;
  at::ScalarType dtype;
  Kernels kernels;
  CpuIsa isa = CpuIsa::Auto;
  bool quantized = false;
};

inline Weights weights_of(const Setup& setup) {
  Weights weights = tiny_weights(1, tiny_config(), setup.dtype);
  if (setup.quantized) weights = quantized(std::move(weights));
  return weights;
}

/// LibTorch's ops, and every ISA that this machine has.
inline std::vector<Setup> every_setup() {
  std::vector<Setup> setups{{"Float32", at::kFloat, Kernels::Auto},
                            {"Bfloat16Plain", at::kBFloat16, Kernels::Reference}};
  const auto add = [&setups](const char* name, CpuIsa isa, bool blocks) {
    if (kernels_for(isa, blocks) != nullptr)
      setups.push_back({name, at::kBFloat16, Kernels::Auto, isa, blocks});
  };
  add("Amx", CpuIsa::Amx, false);
  add("Avx512Bf16", CpuIsa::Avx512Bf16, false);
  add("Avx512", CpuIsa::Avx512, false);
  add("Avx2", CpuIsa::Avx2, false);
  add("PlainCpp", CpuIsa::Portable, false);
  add("Avx512Blocks", CpuIsa::Avx512, true);
  add("Avx2Blocks", CpuIsa::Avx2, true);
  add("PlainCppBlocks", CpuIsa::Portable, true);
  return setups;
}

/// A small random Llama with a setup's weights.
class EveryTarget : public testing::TestWithParam<Setup> {
 protected:
  EveryTarget()
      : weights_(weights_of(GetParam())),
        llama_(weights_, ExecutionContext({.isa = GetParam().isa, .kernels = GetParam().kernels})) {
    if (GetParam().isa != CpuIsa::Auto) {
      EXPECT_STREQ(llama_.kernels(), kernels_for(GetParam().isa, GetParam().quantized)->name);
    }
  }

  /// Bit-equal in bfloat16; in float32 LibTorch's GEMMs depend on the number of rows.
  void expect_same(const at::Tensor& a, const at::Tensor& b, const std::string& what) const {
    if (GetParam().dtype == at::kBFloat16)
      EXPECT_TRUE(at::equal(a, b)) << what << ", " << llama_.kernels();
    else
      EXPECT_TRUE(at::allclose(a, b, 1e-5, 1e-5)) << what;
  }

  Weights weights_;
  Llama llama_;
};

inline std::vector<ChoiceTree> some_trees() {
  std::vector<RankPath> wide, mixed;
  for (int32_t rank = 0; rank < 40; ++rank) wide.push_back({rank});
  for (int32_t rank = 0; rank < 12; ++rank) mixed.push_back({rank});
  for (int32_t a = 0; a < 5; ++a)
    for (int32_t b = 0; b < 5; ++b) mixed.push_back({a, b});
  for (int32_t b = 0; b < 5; ++b)
    for (int32_t c = 0; c < 4; ++c) mixed.push_back({0, b, c});
  return {make_choice_tree({{0}}, 40, "one"), make_choice_tree(wide, 40, "wide"),
          make_choice_tree(mixed, 40, "mixed")};
}

}  // namespace medusa::fixtures
