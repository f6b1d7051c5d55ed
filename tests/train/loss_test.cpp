#include "train/loss/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <tuple>

#include "heads/medusa_heads.h"
#include "tests/backbone/tiny_model.h"
#include "train/samples/batch.h"

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

enum class Kind { Hard, Soft, Acceptance };
constexpr Kind kKinds[] = {Kind::Hard, Kind::Soft, Kind::Acceptance};

struct Setting {
  /// @param rank  of a correction, whose columns follow the states'; 0: none.
  explicit Setting(at::ScalarType dtype, Kind kind, int64_t n = 30, int64_t rows = 50,
                   int64_t rank = 0)
      : states(normal({n, 16 + rank}, 3).to(dtype)),
        output{normal({rows, 16}, 5).to(dtype), at::zeros({rows, 16}, sum_type(dtype))},
        hard(some_labels(n, rows)),
        gradient(at::empty_like(states)) {
    if (rank > 0) {
      output.correction = normal({rows, rank}, 9).to(dtype);
      output.correction_gradient = at::zeros({rows, rank}, sum_type(dtype));
    }
    if (kind == Kind::Hard) return;
    if (kind == Kind::Acceptance) objective = HeadObjective::Acceptance;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < 5; ++j) {  // different rows, unequal shares
        soft_rows.push_back(static_cast<int32_t>((i * 11 + j * 7) % rows));
        soft_probs.push_back(static_cast<float>(5 - j) / 15.0F);
      }
  }

  Labels labels() const { return {hard, soft_rows, soft_probs, objective}; }

  static at::ScalarType sum_type(at::ScalarType dtype) {
    return dtype == at::kDouble ? at::kDouble : at::kFloat;
  }

  at::Tensor states;
  HeadOutputWeight output;
  std::vector<int32_t> hard, soft_rows;
  std::vector<float> soft_probs;
  HeadObjective objective = HeadObjective::CrossEntropy;
  at::Tensor gradient;
};

constexpr double kScale = 0.03;

TEST(HeadLoss, GradientsAreTheNumericOnes) {
  for (const Kind kind : kKinds) {
    Setting at_point(at::kDouble, kind, 9, 12, /*rank=*/4);
    head_loss(at_point.states, at_point.output, at_point.labels(), kScale, 4, at_point.gradient);
    const auto loss = [&] {
      return kScale * head_loss(at_point.states, at_point.output, at_point.labels(), 0, 4, {}).loss;
    };
    for (const auto& [tensor, gradient] :
         {std::pair(at_point.states, at_point.gradient),
          std::pair(at_point.output.weight, at_point.output.gradient),
          std::pair(at_point.output.correction, at_point.output.correction_gradient)}) {
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
}

TEST(HeadLoss, GradientsOfTheHeadsAreTheNumericOnes) {
  const Weights backbone = tiny_weights(1);
  for (const auto& [name, input] : EnumNames<HeadInput>::values) {
    SCOPED_TRACE(name);
    MedusaHeads heads = make_heads({3, 2, input, HeadOutput::Shared, 1}, backbone, {}, /*seed=*/3);
    constexpr int64_t kHead = 2;  // it reads most
    uint64_t seed = 7;
    for (HeadBlock& block : heads.blocks)
      for (at::Tensor* tensor : {&block.weight, &block.bias, &block.second})
        if (tensor->defined()) *tensor = (0.2 * normal(tensor->sizes(), ++seed)).requires_grad_();
    const at::Tensor hidden = normal({5, 64}, 1), read = normal({5, 3, 64}, 2);
    const HeadOutputWeight output{backbone.lm_head.to(at::kDouble), {}};
    const std::vector<int32_t> tokens{3, 9, kNoLabel, 100, 129};
    const Labels labels{tokens, {}, {}};

    const at::Tensor states = head_state(heads, kHead, hidden, read);
    const at::Tensor gradient = at::empty_like(states.detach());
    head_loss(states.detach(), output, labels, kScale, 2, gradient);
    states.backward(gradient);
    const auto loss = [&] {
      return kScale *
             head_loss(head_state(heads, kHead, hidden, read).detach(), output, labels, 0, 2, {})
                 .loss;
    };
    for (auto& [parameter, tensor] : named_parameters(heads)) {
      if (parameter.front() != '2') continue;
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

TEST(HeadLoss, TheFusedKernelAgreesWithTheReference) {
  for (const Kind kind : kKinds)
    for (const auto& [dtype, tolerance, rank] :
         {std::tuple(at::kFloat, 1e-6, 0), std::tuple(at::kBFloat16, 2e-3, 0),
          std::tuple(at::kFloat, 1e-6, 32), std::tuple(at::kBFloat16, 2e-3, 32)}) {
      Setting fused(dtype, kind, 30, 50, rank), plain(dtype, kind, 30, 50, rank);
      const HeadLoss a =
          head_loss(fused.states, fused.output, fused.labels(), kScale, 7, fused.gradient);
      const HeadLoss b =
          reference_head_loss(plain.states, plain.output, plain.labels(), kScale, plain.gradient);
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
  for (const Kind kind : kKinds) {
    Setting whole(at::kFloat, kind), parts(at::kFloat, kind);
    const HeadLoss a =
        head_loss(whole.states, whole.output, whole.labels(), kScale, 100, whole.gradient);
    const HeadLoss b =
        head_loss(parts.states, parts.output, parts.labels(), kScale, 4, parts.gradient);
    EXPECT_NEAR(a.loss, b.loss, 1e-5);
    EXPECT_EQ(a.top_5, b.top_5);
    EXPECT_TRUE(at::allclose(whole.gradient, parts.gradient, 1e-5, 1e-7));
    EXPECT_TRUE(at::allclose(whole.output.gradient, parts.output.gradient, 1e-5, 1e-7));
  }
}

TEST(HeadLoss, OnlyPositionsWithALabelCount) {
  for (const Kind kind : kKinds) {
    Setting setting(at::kFloat, kind);
    const HeadLoss all =
        head_loss(setting.states, setting.output, setting.labels(), kScale, 8, setting.gradient);
    int64_t labels = 0, scored = 0;
    for (size_t i = 0; i < setting.hard.size(); ++i) {
      // A token that the output cannot draft is a miss; its place has a loss only if that is
      // against the backbone's distribution.
      const bool known = setting.hard[i] != kNoLabel;
      const bool has_loss = kind != Kind::Hard ? known : setting.hard[i] >= 0;
      labels += has_loss ? 1 : 0;
      scored += known ? 1 : 0;
      const float largest = setting.gradient[static_cast<int64_t>(i)].abs().max().item<float>();
      EXPECT_EQ(largest > 0, has_loss) << i;
    }
    EXPECT_EQ(all.num_labels, labels);
    EXPECT_EQ(all.num_scored, scored);
    EXPECT_DOUBLE_EQ(all.quality().loss, all.loss / static_cast<double>(labels));
    EXPECT_DOUBLE_EQ(all.quality().top_10,
                     static_cast<double>(all.top_10) / static_cast<double>(scored));
  }
}

TEST(HeadLoss, ACertainSoftLabelIsAHardOne) {
  Setting hard(at::kFloat, Kind::Hard), soft(at::kFloat, Kind::Hard);
  for (int32_t& label : hard.hard) label = std::max(label, 0);
  soft.hard = hard.hard;
  soft.soft_rows = hard.hard;
  soft.soft_probs.assign(hard.hard.size(), 1.0F);
  const HeadLoss a = head_loss(hard.states, hard.output, hard.labels(), kScale, 8, hard.gradient);
  const HeadLoss b = head_loss(soft.states, soft.output, soft.labels(), kScale, 8, soft.gradient);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.top_5, b.top_5);
  EXPECT_TRUE(at::equal(hard.gradient, soft.gradient));
}

}  // namespace
}  // namespace medusa
