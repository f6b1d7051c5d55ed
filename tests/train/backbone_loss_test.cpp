#include "train/loss/backbone_loss.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace medusa {
namespace {

struct Problem {
  Problem() {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
    const auto random = [&](at::IntArrayRef shape) {
      return at::randn(shape, generator, at::kDouble);
    };
    was = {random({5, 8}), random({11, 8})};
    states = random({5, 8});
    output = random({11, 8});
  }

  double kl() const { return divergence(was, states, {output, {}}, 0, 2, {}).kl; }

  ModelOutput was;
  at::Tensor states, output;
};

TEST(Divergence, IsTheSumOverTokensAndPositions) {
  const Problem p;
  const at::Tensor before = at::softmax(at::linear(p.was.states, p.was.output), 1);
  const at::Tensor now = at::softmax(at::linear(p.states, p.output), 1);
  double expected = 0;
  int64_t same = 0;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t v = 0; v < 11; ++v) {
      const double q = before[i][v].item<double>();
      expected += q * std::log(q / now[i][v].item<double>());
    }
    same += before[i].argmax().item<int64_t>() == now[i].argmax().item<int64_t>() ? 1 : 0;
  }
  for (const int64_t chunk : {1, 2, 5, 100}) {
    const Divergence found = divergence(p.was, p.states, {p.output, {}}, 0, chunk, {});
    EXPECT_NEAR(found.kl, expected, 1e-9) << chunk;
    EXPECT_EQ(found.positions, 5);
    EXPECT_EQ(found.same, same);
  }
  EXPECT_NEAR(divergence(p.was, p.was.states, {p.was.output, {}}, 0, 2, {}).kl, 0, 1e-12);
}

TEST(Divergence, GradientsAreTheNumericOnes) {
  Problem p;
  const at::Tensor by_states = at::empty_like(p.states), by_output = at::zeros_like(p.output);
  divergence(p.was, p.states, {p.output, by_output}, /*scale=*/0.5, 2, by_states);
  constexpr double kStep = 1e-5;
  const auto check = [&](at::Tensor& values, const at::Tensor& gradient, const char* name) {
    for (int64_t row = 0; row < values.size(0); ++row)
      for (int64_t column = 0; column < values.size(1); ++column) {
        at::Tensor value = values[row][column];
        value.add_(kStep);
        const double above = p.kl();
        value.sub_(2 * kStep);
        const double below = p.kl();
        value.add_(kStep);
        EXPECT_NEAR(0.5 * (above - below) / (2 * kStep), gradient[row][column].item<double>(), 1e-8)
            << name << " " << row << " " << column;
      }
  };
  check(p.states, by_states, "states");
  check(p.output, by_output, "output");
}

}  // namespace
}  // namespace medusa
