// Attention of trees on the GPU's kernels: against the plain path, and bit by bit against itself.
#include "backbone/cuda/layer_kernels.h"
#include "tests/cuda/attention_scene.h"

namespace medusa {
namespace {

using TreeAttention = LayerKernelTest;
INSTANTIATE_TEST_SUITE_P(Choices, TreeAttention, kernel_choices(), table_choice_name<LayerKernels>);

/// Of unit normal queries, keys and values. What is rounded: weights of chunks and the results.
void expect_near(const at::Tensor& out, const at::Tensor& exact, const std::string& what) {
  const at::Tensor error = (out.to(at::kFloat) - exact).abs();
  EXPECT_LT(error.max().item<float>(), 2e-2F) << what;
  EXPECT_LT((error.mean() / exact.abs().mean()).item<float>(), 3e-3F) << what;
}

TEST_P(TreeAttention, EqualsTheReferenceForEveryTreeAndLength) {
  struct Case {
    HeadShape shape;
    int32_t nodes, spread, start;
  };
  const std::vector<Case> cases{
      {{2, 2, 64}, 1, 1, 0},      {{4, 1, 64}, 7, 3, 0},    {{3, 1, 96}, 64, 6, 0},
      {{2, 2, 128}, 2, 1, 1},     {{8, 1, 128}, 16, 4, 1},  {{2, 1, 64}, 1, 1, 63},
      {{3, 1, 64}, 33, 5, 63},    {{4, 2, 96}, 7, 2, 64},   {{1, 1, 128}, 64, 9, 64},
      {{8, 2, 64}, 16, 3, 65},    {{2, 2, 96}, 1, 1, 127},  {{4, 1, 128}, 33, 4, 127},
      {{1, 1, 64}, 64, 20, 128},  {{3, 1, 128}, 2, 1, 129}, {{8, 1, 96}, 7, 3, 129},
      {{2, 1, 128}, 64, 7, 300},  {{4, 1, 64}, 1, 1, 319},  {{3, 1, 64}, 64, 1, 320},
      {{16, 1, 64}, 16, 5, 383},  {{2, 1, 64}, 16, 4, 700}, {{8, 1, 64}, 64, 8, 700},
      {{1, 1, 128}, 33, 12, 700}, {{5, 1, 64}, 40, 2, 200}, {{16, 1, 64}, 64, 5, 90}};
  uint64_t seed = 100;
  for (const auto& [shape, nodes, spread, start] : cases) {
    seed += 10;
    const AttentionScene scene(shape, {{2, start, random_parents(nodes, spread, seed)}}, seed);
    expect_near(scene.run(GetParam()), scene.plain(0),
                std::to_string(nodes) + " nodes at " + std::to_string(start) + ", heads " +
                    std::to_string(shape.heads) + '/' + std::to_string(shape.groups) + " of " +
                    std::to_string(shape.size));
  }
}

TEST_P(TreeAttention, AWindowHidesAllButTheLastPositions) {
  for (const int32_t start : {0, 70, 190, 400}) {
    const AttentionScene scene({2, 1, 64}, {{0, start, random_parents(20, 4, 7)}}, 5);
    for (const int64_t window : {1, 2, 40, 64, 65, 100, 128, 130, 200, 260, 1000}) {
      expect_near(scene.run(GetParam(), {.window = window}), scene.plain(window),
                  std::to_string(start) + " window " + std::to_string(window));
    }
  }
}

TEST_P(TreeAttention, ScoresMayBeFarApart) {
  // Powers of two between them that no float32 holds: each split has its own largest score.
  AttentionScene scene({2, 1, 64}, {{2, 600, random_parents(8, 3, 9)}}, 30);
  scene.sharpen(1024);
  expect_near(scene.run(GetParam()), scene.plain(0), "sharp");
}

TEST_P(TreeAttention, SlotsAreKeptApart) {
  const AttentionScene scene({4, 2, 64},
                             {{3, 140, random_parents(7, 3, 1)},
                              {0, 0, random_parents(2, 1, 2)},
                              {1, 390, random_parents(33, 5, 3)},
                              {2, 64, random_parents(1, 1, 4)}},
                             50);
  expect_near(scene.run(GetParam()), scene.plain(0), "four slots");
}

/// A node's path moved together in the cache, its last row decoded plainly: it sees committed rows
/// and itself.
at::Tensor decode_plainly(const KernelChoice& choice, const AttentionScene& scene, size_t node,
                          const AttentionRun& how) {
  const RowSpec& row = scene.rows()[node];
  const std::vector<int32_t> path = nodes_of(row);
  const at::Tensor keys = scene.keys().to(choice.device, false, /*copy=*/true);
  const at::Tensor values = scene.values().to(choice.device, false, /*copy=*/true);
  const auto column = [&](const std::vector<int32_t>& values_of_it) {
    return at::tensor(values_of_it, at::kInt).to(choice.device);
  };
  const at::Tensor slots = column({row.slot}), starts = column({row.start}),
                   counts = column({static_cast<int32_t>(path.size())}), paths = column(path);
  choice.table()->move_rows({.cache = cache_view(keys, values),
                             .slots = elements<int32_t>(slots),
                             .starts = elements<int32_t>(starts),
                             .counts = elements<int32_t>(counts),
                             .paths = elements<int32_t>(paths),
                             .num_sequences = 1,
                             .max_path = static_cast<int32_t>(path.size())},
                            nullptr);
  const RowSpec plain{.slot = row.slot,
                      .start = row.position,
                      .position = row.position,
                      .cache_row = row.position,
                      .path = 1};
  return scene.run(choice, {plain}, scene.query().narrow(0, static_cast<int64_t>(node), 1), keys,
                   values, how);
}

TEST_P(TreeAttention, ANodeHasTheBitsOfItsPathDecodedPlainly) {
  struct Case {
    HeadShape shape;
    int32_t nodes, spread, start;
    int64_t window;
  };
  const std::vector<Case> cases{{{2, 1, 64}, 16, 4, 0, 0},     {{1, 1, 128}, 64, 9, 60, 0},
                                {{4, 1, 64}, 33, 3, 100, 0},   {{3, 1, 96}, 64, 20, 127, 0},
                                {{2, 2, 64}, 64, 2, 250, 0},   {{1, 1, 64}, 64, 1, 300, 0},
                                {{8, 1, 64}, 40, 5, 310, 150}, {{2, 1, 128}, 7, 2, 515, 0},
                                {{1, 1, 96}, 33, 4, 700, 90},  {{16, 1, 64}, 64, 5, 70, 0}};
  uint64_t seed = 500;
  for (const auto& [shape, nodes, spread, start, window] : cases) {
    seed += 10;
    const AttentionScene scene(shape, {{1, start, random_parents(nodes, spread, seed)}}, seed);
    const AttentionRun how{.window = window};
    const at::Tensor tree = scene.run(GetParam(), how);
    const auto last = static_cast<size_t>(nodes) - 1;
    for (const size_t node : {size_t{0}, last / 3, last / 2, last * 3 / 4, last})
      EXPECT_TRUE(same_bits(decode_plainly(GetParam(), scene, node, how),
                            tree.narrow(0, static_cast<int64_t>(node), 1)))
          << "node " << node << " of " << nodes << " at " << start << " window " << window;
  }
}

TEST_P(TreeAttention, ARowHasItsBitsBesideAnyOthers) {
  const AttentionScene scene({4, 2, 64},
                             {{0, 330, random_parents(24, 4, 11)},
                              {3, 10, random_parents(9, 2, 12)},
                              {2, 100, random_parents(33, 6, 13)}},
                             70);
  const at::Tensor all = scene.run(GetParam());
  for (const AttentionRun& how :
       {AttentionRun{.more_context = 1}, AttentionRun{.more_context = 900},
        AttentionRun{.tiles_backwards = true}, AttentionRun{.tile_rows = 1},
        AttentionRun{.tile_rows = 5}})
    EXPECT_TRUE(same_bits(scene.run(GetParam(), how), all))
        << how.more_context << ' ' << how.tile_rows;
  for (const auto& [first, count] :
       {std::pair(0, 1), std::pair(23, 1), std::pair(5, 17), std::pair(20, 13), std::pair(65, 1)}) {
    const auto begin = scene.rows().begin() + first;
    EXPECT_TRUE(same_bits(
        scene.run(GetParam(), {begin, begin + count}, scene.query().narrow(0, first, count),
                  scene.keys(), scene.values(), {}),
        all.narrow(0, first, count)))
        << first << ' ' << count;
  }
}

TEST_P(TreeAttention, APromptsRowsAreTheSameBitsCommittedOrNot) {
  // A chain of 64 whose rows end their chunks at different places; then the same rows, each of
  // which takes those before it as committed.
  for (const int32_t start : {0, 5, 63, 190, 290}) {
    const AttentionScene scene({2, 1, 64}, {{1, start, random_parents(64, 1, 1)}}, 90);
    std::vector<RowSpec> rows = scene.rows();
    for (RowSpec& row : rows) {
      row.start = row.position;
      row.path = 1;
    }
    EXPECT_TRUE(
        same_bits(scene.run(GetParam(), rows, scene.query(), scene.keys(), scene.values(), {}),
                  scene.run(GetParam())))
        << start;
  }
}

TEST_P(TreeAttention, SupportsTheHeadsOfUsualModels) {
  const LayerKernels& table = kernels();
  for (const int64_t size : {64, 96, 128})
    for (const int64_t per_group : {1, 2, 3, 4, 5, 6, 7, 8}) {
      EXPECT_TRUE(table.supports(size, per_group)) << size << ' ' << per_group;
      EXPECT_GE(table.tile_rows(per_group), 8) << per_group;
    }
  EXPECT_FALSE(table.supports(80, 1));
  EXPECT_FALSE(table.supports(32, 1));
  EXPECT_FALSE(table.supports(128, 0));
  EXPECT_EQ(table.attention_scratch(64, 32, 128, 50), 64 * 32 * 132) << "tails alone";
  EXPECT_GE(table.attention_scratch(64, 32, 128, 2000), table.attention_scratch(64, 32, 128, 1000));
}

}  // namespace
}  // namespace medusa
