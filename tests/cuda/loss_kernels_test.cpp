// The loss of rows of logits on a GPU against train/loss/row_loss.h.
#include <limits>
#include <vector>

#include "tests/backbone/normal_tensor.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/table_test.h"
#include "train/cuda/device_loss.h"

namespace medusa {
namespace {

using fixtures::normal;

using LossKernelsTest = TableTest<LossKernels>;
INSTANTIATE_TEST_SUITE_P(Tables, LossKernelsTest,
                         table_choices(emulated_loss_kernels, cuda_loss_kernels),
                         table_choice_name<LossKernels>);

/// Rows of logits and what they should have said.
struct LossScene {
  at::Tensor logits;  // [n, V_t] float32 or bfloat16
  std::vector<int32_t> hard, soft_rows;
  std::vector<float> soft_probs;
  HeadObjective objective = HeadObjective::CrossEntropy;

  Labels labels() const { return {hard, soft_rows, soft_probs, objective}; }
};

/// Every fourth row has no label, each fifth two equal logits of which one is the label's.
LossScene make_scene(int64_t num_rows, int64_t row_size, int64_t num_targets, at::ScalarType dtype,
                     double width) {
  LossScene scene{(normal({num_rows, row_size}, 7) * width).to(dtype), {}, {}, {}};
  for (int64_t r = 0; r < num_rows; ++r) {
    const auto label = static_cast<int32_t>((r * 37 + 11) % row_size);
    if (r % 5 == 0) {
      const int64_t other = (label + row_size / 2) % row_size;
      scene.logits[r][label].copy_(scene.logits[r][other]);
    }
    scene.hard.push_back(r % 4 == 3                      ? kNoLabel
                         : r % 7 == 5 && num_targets > 0 ? kLabelNotKept
                                                         : label);
    for (int64_t i = 0; i < num_targets; ++i) {
      scene.soft_rows.push_back(static_cast<int32_t>((label + i * 3) % row_size));
      scene.soft_probs.push_back(2.0F * static_cast<float>(i + 1) /
                                 static_cast<float>(num_targets * (num_targets + 1)));
    }
  }
  return scene;
}

/// What the CPU's code makes of the same rows.
template <typename T>
std::vector<RowLoss> on_cpu(const LossScene& scene, const at::Tensor& logits, float scale) {
  const Labels labels = scene.labels();
  const auto size = static_cast<size_t>(logits.size(1));
  const auto m = static_cast<size_t>(labels.soft_size());
  static constexpr float kCertain = 1;
  std::vector<RowLoss> out;
  for (size_t r = 0; r < scene.hard.size(); ++r) {
    const std::span<T> row(static_cast<T*>(logits.data_ptr()) + r * size, size);
    out.push_back({0, std::numeric_limits<int32_t>::max()});
    if (!labels.has_loss(r)) {
      if (scale != 0) std::fill(row.begin(), row.end(), T{});
      continue;
    }
    const RowTarget target =
        labels.is_soft() ? RowTarget{labels.hard[r], labels.soft_rows.subspan(r * m, m),
                                     labels.soft_probs.subspan(r * m, m)}
                         : RowTarget{labels.hard[r], labels.hard.subspan(r, 1), {&kCertain, 1}};
    out.back() = scene.objective == HeadObjective::Acceptance ? acceptance_loss(row, target, scale)
                                                              : cross_entropy(row, target, scale);
  }
  return out;
}

TEST_P(LossKernelsTest, LossRankAndGradientAreTheCpus) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t row_size : {3, 40, 1001, 9000})
      for (const int64_t num_targets : {0, 1, 20})
        for (const HeadObjective objective :
             {HeadObjective::CrossEntropy, HeadObjective::Acceptance})
          for (const double width : {0.5, 30.0})
            for (const float scale : {0.0F, 0.3F}) {
              if (num_targets * 3 > row_size) continue;  // each row once
              LossScene scene = make_scene(9, row_size, num_targets, dtype, width);
              scene.objective = objective;
              const at::Tensor there = scene.logits.clone().to(device());
              const at::Tensor here = scene.logits.clone();
              const auto found = device_row_losses(there, scene.labels(), scale, kernels());
              const auto expected = dtype == at::kFloat ? on_cpu<float>(scene, here, scale)
                                                        : on_cpu<uint16_t>(scene, here, scale);
              ASSERT_EQ(found.size(), expected.size());
              for (size_t r = 0; r < found.size(); ++r) {
                EXPECT_EQ(found[r].rank, expected[r].rank) << row_size << " row " << r;
                EXPECT_NEAR(found[r].loss, expected[r].loss,
                            2e-4 + 1e-5 * std::abs(expected[r].loss))
                    << row_size << " " << num_targets << " row " << r;
              }
              const double rounding = dtype == at::kFloat ? 2e-6 : 1.0 / 128;
              const at::Tensor a = there.cpu().to(at::kFloat), b = here.to(at::kFloat);
              const at::Tensor off = (a - b).abs() - rounding * b.abs();
              const int64_t worst = off.argmax().item<int64_t>();
              EXPECT_LE(off.max().item<double>(), 1e-6)
                  << row_size << " " << num_targets << " " << width << " " << scale << " "
                  << static_cast<int>(objective) << dtype << " at " << worst / row_size << ", "
                  << worst % row_size << ": " << a.view(-1)[worst].item<float>() << " for "
                  << b.view(-1)[worst].item<float>();
            }
}

TEST_P(LossKernelsTest, ARowWithoutALossIsZeroAndNoRowIsNothing) {
  LossScene scene = make_scene(4, 24, 0, at::kBFloat16, 1);
  scene.hard.assign(4, kNoLabel);
  const at::Tensor there = scene.logits.clone().to(device());
  for (const RowLoss& each : device_row_losses(there, scene.labels(), 1, kernels())) {
    EXPECT_EQ(each.loss, 0);
    EXPECT_EQ(each.rank, std::numeric_limits<int32_t>::max());
  }
  EXPECT_EQ(there.abs().max().item<float>(), 0);
  const at::Tensor none = at::empty({0, 24}, there.options());
  EXPECT_TRUE(device_row_losses(none, Labels{}, 1, kernels()).empty());
}

}  // namespace
}  // namespace medusa
