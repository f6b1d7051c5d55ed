#include "train/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace medusa {
namespace {

TEST(AdamW, UpdatesAsThePaperSays) {
  at::Tensor parameter = at::full({1}, 2.0F);
  AdamW optimizer({{"p", parameter}});
  double p = 2, first = 0, second = 0;
  for (int t = 1; t <= 5; ++t) {
    const double gradient = 0.3 * t - 0.7, rate = 0.1 / t, decay = 0.05;
    parameter.mutable_grad() = at::full({1}, gradient, at::kFloat);
    EXPECT_NEAR(optimizer.step(rate, decay, /*clip_norm=*/100), std::abs(gradient), 1e-6);
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    p -= rate * decay * p;
    p -= rate * (first / (1 - std::pow(0.9, t))) /
         (std::sqrt(second / (1 - std::pow(0.999, t))) + 1e-8);
    EXPECT_NEAR(parameter.item<float>(), p, 1e-5) << t;
    EXPECT_FALSE(parameter.grad().defined());
  }
  EXPECT_EQ(optimizer.num_steps(), 5);
}

TEST(AdamW, ClipsTheNormOverAllParameters) {
  at::Tensor a = at::zeros({1}), b = at::zeros({1});
  AdamW optimizer({{"a", a}, {"b", b}});
  a.mutable_grad() = at::full({1}, 3.0F);
  b.mutable_grad() = at::full({1}, 4.0F);
  EXPECT_NEAR(optimizer.step(0.1, 0, /*clip_norm=*/1), 5.0, 1e-6);
  const auto moments = optimizer.moments();
  ASSERT_EQ(moments.size(), 4U);
  EXPECT_EQ(moments[2].first, "first.b");
  EXPECT_NEAR(moments[0].second.item<float>(), 0.1 * 0.6, 1e-6);
  EXPECT_NEAR(moments[2].second.item<float>(), 0.1 * 0.8, 1e-6);
}

TEST(AdamW, RestoredMomentsContinueTheSameRun) {
  const auto run = [](int interrupted_at) {
    at::Tensor p = at::full({3}, 1.0F);
    auto optimizer =
        std::make_unique<AdamW>(std::vector<std::pair<std::string, at::Tensor>>{{"p", p}});
    for (int t = 0; t < 6; ++t) {
      if (t == interrupted_at) {
        std::vector<at::Tensor> moments;
        for (const auto& [name, tensor] : optimizer->moments()) moments.push_back(tensor.clone());
        const int64_t steps = optimizer->num_steps();
        optimizer =
            std::make_unique<AdamW>(std::vector<std::pair<std::string, at::Tensor>>{{"p", p}});
        optimizer->restore(steps, moments);
      }
      p.mutable_grad() = at::cos(p + t);
      optimizer->step(0.05, 0.01, 0.5);
    }
    return p;
  };
  EXPECT_TRUE(at::equal(run(-1), run(3)));
}

TEST(AdamW, AGroupLearnsAtItsMultipleOfTheRate) {
  at::Tensor a = at::zeros({1}), b = at::zeros({1});
  AdamW optimizer(std::vector<ParameterGroup>{{{{"a", a}}, 1}, {{}, 9}, {{{"b", b}}, 4}});
  a.mutable_grad() = at::full({1}, 0.5F);
  b.mutable_grad() = at::full({1}, 0.5F);
  optimizer.step(0.01, 0, /*clip_norm=*/100);
  EXPECT_NEAR(a.item<float>(), -0.01, 1e-6);
  EXPECT_NEAR(b.item<float>(), -0.04, 1e-6);
}

TEST(AdamW, AGradientThatIsNoNumberChangesNothing) {
  at::Tensor a = at::zeros({2});
  AdamW optimizer({{"a", a}});
  a.mutable_grad() = at::tensor({1.0F, std::nanf("")});
  EXPECT_TRUE(std::isnan(optimizer.step(0.1, 0.1, 1)));
  EXPECT_TRUE(at::equal(a, at::zeros({2})));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(optimizer.num_steps(), 0);
  EXPECT_TRUE(at::equal(optimizer.moments()[0].second, at::zeros({2})));
}

}  // namespace
}  // namespace medusa
