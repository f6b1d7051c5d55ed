// What else stands between two passes on a GPU: drafts, trees, places, lengths.
#include "infer/cuda/step_kernels.h"

#include <numeric>

#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"
#include "infer/sampling.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/tiny_model.h"
#include "tests/cuda/device_tree.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/table_test.h"

namespace medusa {
namespace {

using fixtures::normal;

using StepKernelsTest = TableTest<StepKernels>;
INSTANTIATE_TEST_SUITE_P(Tables, StepKernelsTest,
                         table_choices(emulated_step_kernels, cuda_step_kernels,
                                       /*has_blocks=*/true),
                         table_choice_name<StepKernels>);

std::vector<int32_t> top_k(const StepKernels& kernels, at::Device device, const at::Tensor& logits,
                           int32_t k, const std::vector<int32_t>& token_of_row = {}) {
  const at::Tensor on_device = logits.to(device), map = ints(token_of_row, device);
  const at::Tensor tokens =
      ints(std::vector<int32_t>(static_cast<size_t>(logits.size(0) * k), -7), device);
  kernels.top_k({.logits = on_device.data_ptr<float>(),
                 .num_rows = logits.size(0),
                 .row_size = logits.size(1),
                 .k = k,
                 .token_of_row = token_of_row.empty() ? nullptr : elements<int32_t>(map),
                 .tokens = elements<int32_t>(tokens)},
                nullptr);
  return vector_of(tokens);
}

std::vector<int32_t> sorted_top_k(const at::Tensor& logits, int32_t k) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < logits.size(0); ++i)
    for (const TokenId token : largest_tokens(logits_row(logits, i), k)) out.push_back(token);
  return out;
}

TEST_P(StepKernelsTest, TopKIsSortedAndOfEqualsTheLowerRowComesFirst) {
  for (const int64_t size : {1, 16, 33, 1025, 3000})
    for (const int32_t k : {1, 16}) {
      if (k > size) continue;
      at::Tensor logits = normal({2, size}, static_cast<uint64_t>(size));
      logits[1] = (logits[1] * 2).round();
      EXPECT_EQ(top_k(kernels(), device(), logits, k), sorted_top_k(logits, k)) << size << ' ' << k;
    }
}

TEST_P(StepKernelsTest, TopKFindsTheBestWhereverTheyStand) {
  const at::Tensor one_thread = normal({1, 70000}, 1);  // all of one thread's numbers, or of two's
  for (int64_t i = 0; i < 60; ++i) one_thread[0][i * 1024 + 77] = 10 + i % 7;
  const at::Tensor rising = at::arange(5000, at::kFloat).unsqueeze(0), falling = rising.flip(1);
  const at::Tensor equal = at::zeros({1, 2500});
  at::Tensor few = at::full({1, 3000}, -INFINITY);
  few[0][2999] = 1;
  few[0][7] = 0;
  for (const at::Tensor& logits : {one_thread, rising, falling.contiguous(), equal, few})
    EXPECT_EQ(top_k(kernels(), device(), logits, 16), sorted_top_k(logits, 16));
}

TEST_P(StepKernelsTest, TopKOfDamagedRowsNamesRowsThatThereAre) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  at::Tensor some = normal({1, 1500}, 4);
  some[0][1400] = some[0][3] = kNan;
  const at::Tensor all = at::full({1, 20}, kNan), none = at::full({1, 20}, -INFINITY);
  EXPECT_EQ(top_k(kernels(), device(), all, 3), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(top_k(kernels(), device(), none, 3), (std::vector<int32_t>{0, 1, 2}));
  std::vector<int32_t> expected = sorted_top_k(some.nan_to_num(-1e9), 14);
  expected.insert(expected.begin(), {3, 1400});
  EXPECT_EQ(top_k(kernels(), device(), some, 16), expected);
}

TEST_P(StepKernelsTest, TopKNamesTheTokensOfRows) {
  const at::Tensor logits = normal({2, 50}, 8);
  std::vector<int32_t> map(50);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<int32_t>(1000 + 3 * i);
  std::vector<int32_t> expected = sorted_top_k(logits, 5);
  for (int32_t& each : expected) each = map[static_cast<size_t>(each)];
  EXPECT_EQ(top_k(kernels(), device(), logits, 5, map), expected);
}

TEST_P(StepKernelsTest, RowsArePlacedAsPlanned) {
  Dice dice(3);
  for (const int32_t nodes : {1, 2, 9, 33, 64})
    for (const int32_t spread : {1, 4}) {
      const TestTree shape = random_shape(dice, nodes, spread);
      const std::vector<int32_t> lengths{7, 0, 100}, slots{2, 0, 1};
      KvCache cache(tiny_config(), 3, 256, at::kFloat, at::kCPU, KvLayout::Rows);
      for (int32_t slot = 0; slot < 3; ++slot) {
        const auto b =
            static_cast<size_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
        std::vector<int32_t> committed(static_cast<size_t>(lengths[b]));
        std::iota(committed.begin(), committed.end(), 0);
        cache.commit(cache.open(), committed);
      }
      const std::vector<TokenId> tokens(shape.size());
      std::vector<Segment> segments;
      for (const int32_t slot : slots) segments.push_back({slot, tokens, shape.parents});
      const ForwardPlan plan = plan_forward(segments, cache);

      const TreeOnDevice tree(shape, device());
      const at::Tensor of_slots = ints(slots, device()), of_lengths = ints(lengths, device());
      const auto fresh = [&](at::ScalarType type) {
        return at::full({plan.size()}, -7, at::TensorOptions().dtype(type).device(device()));
      };
      const at::Tensor row_slots = fresh(at::kInt), starts = fresh(at::kInt);
      const at::Tensor positions = fresh(at::kInt), cache_rows = fresh(at::kInt);
      const at::Tensor paths = fresh(at::kLong);
      kernels().place_rows({.tree = tree.view(),
                            .slots = elements<int32_t>(of_slots),
                            .lengths = elements<int32_t>(of_lengths),
                            .num_sequences = 3,
                            .row_slots = elements<int32_t>(row_slots),
                            .starts = elements<int32_t>(starts),
                            .positions = elements<int32_t>(positions),
                            .cache_rows = elements<int32_t>(cache_rows),
                            .paths = elements<uint64_t>(paths)},
                           nullptr);
      const at::Tensor path_bits = paths.cpu();
      for (int64_t i = 0; i < plan.size(); ++i) {
        const BatchToken& row = plan.rows[static_cast<size_t>(i)];
        EXPECT_EQ(row_slots[i].item<int32_t>(), row.slot);
        EXPECT_EQ(starts[i].item<int32_t>(), row.start);
        EXPECT_EQ(positions[i].item<int32_t>(), row.position);
        EXPECT_EQ(cache_rows[i].item<int32_t>(), row.cache_row);
        uint64_t path = 0;
        for (const int64_t above : plan.path(row)) path |= uint64_t{1} << (above - row.start);
        EXPECT_EQ(elements<uint64_t>(path_bits)[i], path);
      }
    }
}

TEST_P(StepKernelsTest, AdvanceCommitsAndKeepsTheLastState) {
  constexpr int32_t kNodes = 7, kMostPath = 4;
  for (const int64_t hidden_size : {8, 64, 264, 1032}) {
    const at::Tensor hidden = normal({3 * kNodes, hidden_size}, 2).to(at::kBFloat16).to(device());
    const at::Tensor counts = ints({1, 3, 4}, device()), lengths = ints({5, 0, 90}, device());
    const at::Tensor paths = ints({0, -1, -1, -1, 0, 2, 5, -1, 0, 1, 3, 6}, device());
    const at::Tensor states = at::zeros({3, hidden_size}, hidden.options());
    const at::Tensor turn = ints({4}, device());
    kernels().advance({.num_sequences = 3,
                       .num_nodes = kNodes,
                       .max_path = kMostPath,
                       .counts = elements<int32_t>(counts),
                       .paths = elements<int32_t>(paths),
                       .lengths = elements<int32_t>(lengths),
                       .hidden = elements<Bf16>(hidden),
                       .hidden_size = hidden_size,
                       .states = elements<Bf16>(states),
                       .turn = elements<int32_t>(turn)},
                      nullptr);
    EXPECT_EQ(vector_of(turn), std::vector<int32_t>{5});
    EXPECT_EQ(vector_of(lengths), (std::vector<int32_t>{6, 3, 94}));
    EXPECT_TRUE(states.equal(hidden.index_select(0, ints({0, 7 + 5, 14 + 6}, device()))))
        << hidden_size;
  }
}

}  // namespace
}  // namespace medusa
