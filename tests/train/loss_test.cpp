#include "train/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "heads/medusa_heads.h"
#include "tests/backbone/tiny_model.h"
#include "train/batch.h"

namespace medusa {
namespace {

at::Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

/// Labels of 0 to V_t - 1 with some missing and some that are not kept.
std::vector<int32_t> some_labels(int64_t n, int64_t rows) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i)
    labels.push_back(i % 7 == 3   ? kNoLabel
                     : i % 7 == 5 ? kLabelNotKept
                                  : static_cast<int32_t>((i * 37) % rows));
  return labels;
}

struct Setting {
  explicit Setting(at::ScalarType dtype, int64_t n = 30, int64_t rows = 50)
      : states(normal({n, 16}, 3).to(dtype)),
        output{normal({rows, 16}, 5).to(dtype), at::zeros({rows, 16}, sum_type(dtype))},
        labels(some_labels(n, rows)),
        gradient(at::empty_like(states)) {}

  static at::ScalarType sum_type(at::ScalarType dtype) {
    return dtype == at::kDouble ? at::kDouble : at::kFloat;
  }

  at::Tensor states;
  HeadOutputWeight output;
  std::vector<int32_t> labels;
  at::Tensor gradient;
};

constexpr double kScale = 0.03;

TEST(HeadLoss, GradientsAreTheNumericOnes) {
  Setting at_point(at::kDouble, 9, 12);
  head_loss(at_point.states, at_point.output, at_point.labels, kScale, 4, at_point.gradient);
  const auto loss = [&] {
    return kScale * head_loss(at_point.states, at_point.output, at_point.labels, 0, 4, {}).loss;
  };
  for (const auto& [tensor, gradient] :
       {std::pair(at_point.states, at_point.gradient),
        std::pair(at_point.output.weight, at_point.output.gradient)}) {
    auto* values = tensor.data_ptr<double>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double here = values[i], step = 1e-5;
      values[i] = here + step;
      const double above = loss();
      values[i] = here - step;
      const double below = loss();
      values[i] = here;
      ASSERT_NEAR(gradient.const_data_ptr<double>()[i], (above - below) / (2 * step), 1e-8) << i;
    }
  }
}

TEST(HeadLoss, GradientsOfTheHeadsAreTheNumericOnes) {
  const Weights backbone = tiny_weights(1);
  for (const auto& [name, input] : EnumNames<HeadInput>::values) {
    SCOPED_TRACE(name);
    MedusaHeads heads = make_heads({1, 2, input, HeadOutput::Shared, 1}, backbone, {}, /*seed=*/3);
    uint64_t seed = 7;
    for (HeadBlock& block : heads.blocks)
      for (at::Tensor* tensor : {&block.weight, &block.bias, &block.second})
        if (tensor->defined()) *tensor = (0.2 * normal(tensor->sizes(), ++seed)).requires_grad_();
    const at::Tensor hidden = normal({5, 64}, 1), roots = normal({5, 64}, 2);
    const HeadOutputWeight output{backbone.lm_head.to(at::kDouble), {}};
    const std::vector<int32_t> labels{3, 9, kNoLabel, 100, 129};

    const at::Tensor states = head_state(heads, 0, hidden, roots);
    const at::Tensor gradient = at::empty_like(states.detach());
    head_loss(states.detach(), output, labels, kScale, 2, gradient);
    states.backward(gradient);
    const auto loss = [&] {
      return kScale *
             head_loss(head_state(heads, 0, hidden, roots).detach(), output, labels, 0, 2, {}).loss;
    };
    for (auto& [parameter, tensor] : named_parameters(heads)) {
      auto* values = tensor.detach().data_ptr<double>();
      for (int64_t i = 0; i < tensor.numel(); i += 97) {
        const double here = values[i], step = 1e-5;
        values[i] = here + step;
        const double above = loss();
        values[i] = here - step;
        const double below = loss();
        values[i] = here;
        ASSERT_NEAR(tensor.grad().const_data_ptr<double>()[i], (above - below) / (2 * step), 1e-8)
            << parameter << " " << i;
      }
    }
  }
}

TEST(HeadLoss, TheFusedKernelAgreesWithThePlainTwin) {
  for (const auto& [dtype, tolerance] :
       {std::pair(at::kFloat, 1e-6), std::pair(at::kBFloat16, 2e-3)}) {
    Setting fused(dtype), plain(dtype);
    const HeadLoss a =
        head_loss(fused.states, fused.output, fused.labels, kScale, 7, fused.gradient);
    const HeadLoss b =
        head_loss_plain(plain.states, plain.output, plain.labels, kScale, plain.gradient);
    EXPECT_NEAR(a.loss, b.loss, 1e-4);
    EXPECT_EQ(a.num_labels, b.num_labels);
    EXPECT_EQ(a.num_scored, b.num_scored);
    EXPECT_EQ(a.top_1, b.top_1);
    EXPECT_EQ(a.top_5, b.top_5);
    EXPECT_EQ(a.top_10, b.top_10);
    EXPECT_TRUE(at::allclose(fused.gradient.to(at::kFloat), plain.gradient.to(at::kFloat), 1e-2,
                             tolerance));
    EXPECT_TRUE(at::allclose(fused.output.gradient, plain.output.gradient, 1e-2, tolerance));
  }
}

TEST(HeadLoss, ChunksChangeNothing) {
  Setting whole(at::kFloat), parts(at::kFloat);
  const HeadLoss a =
      head_loss(whole.states, whole.output, whole.labels, kScale, 100, whole.gradient);
  const HeadLoss b = head_loss(parts.states, parts.output, parts.labels, kScale, 4, parts.gradient);
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  EXPECT_EQ(a.top_5, b.top_5);
  EXPECT_TRUE(at::allclose(whole.gradient, parts.gradient, 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(whole.output.gradient, parts.output.gradient, 1e-5, 1e-7));
}

TEST(HeadLoss, LabelsThatCannotBeGuessedAreMissesWithoutLoss) {
  Setting setting(at::kFloat);
  const HeadLoss all =
      head_loss(setting.states, setting.output, setting.labels, kScale, 8, setting.gradient);
  int64_t labels = 0, scored = 0;
  for (size_t i = 0; i < setting.labels.size(); ++i) {
    labels += setting.labels[i] >= 0 ? 1 : 0;
    scored += setting.labels[i] != kNoLabel ? 1 : 0;
    const float largest = setting.gradient[static_cast<int64_t>(i)].abs().max().item<float>();
    EXPECT_EQ(largest > 0, setting.labels[i] >= 0) << i;
  }
  EXPECT_EQ(all.num_labels, labels);
  EXPECT_EQ(all.num_scored, scored);
  EXPECT_LT(labels, scored);
  EXPECT_DOUBLE_EQ(all.quality().loss, all.loss / static_cast<double>(labels));
  EXPECT_DOUBLE_EQ(all.quality().top_10,
                   static_cast<double>(all.top_10) / static_cast<double>(scored));
}

}  // namespace
}  // namespace medusa
