#include "tests/reference/attention.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backbone/attention.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

using fixtures::normal;

void commit_first(KvCache& cache, int32_t slot, int32_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  cache.commit(slot, rows);
}

/// Two slots of 5 and 29 committed rows, their caches full of random numbers.
struct Scene {
  KvCache cache;
  std::vector<int32_t> parents{-1, 0, 0, 1, 2, 4, 1};
  std::vector<TokenId> tokens;
  std::vector<Segment> segments;
  ForwardPlan plan;
  at::Tensor query;  // [N, A, D]

  /// @param whole_slots  else the longer slot's rows lie in two blocks.
  explicit Scene(at::ScalarType dtype, bool whole_slots = false)
      : cache(tiny_config(), 2, 64, dtype, at::kCPU, KvLayout::Rows, {whole_slots, {}}),
        tokens(parents.size(), 1) {
    for (const int32_t length : {5, 29}) commit_first(cache, cache.open(), length);
    for (const int32_t slot : {1, 0}) cache.make_room(slot, 64);  // not in order
    const ModelConfig config = tiny_config();
    for (const KvSide side : {KvSide::Keys, KvSide::Values})
      for (int64_t layer = 0; layer < config.num_layers; ++layer)
        for (const int32_t slot : {0, 1})
          cache.write(side, layer, slot, 0,
                      normal({config.num_kv_heads, 64, config.head_size},
                             1 + 2 * static_cast<uint64_t>(2 * layer + slot) +
                                 (side == KvSide::Keys ? 0 : 1)));
    segments = {{1, tokens, parents}, {0, std::span(tokens).first(3), {}}};
    plan = plan_forward(segments, cache);
    query = normal({plan.size(), tiny_config().num_heads, tiny_config().head_size}, 3);
  }
};

class AttentionTypes : public testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Types, AttentionTypes, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& each) { return std::string(at::toString(each.param)); });

TEST_P(AttentionTypes, BothWaysAgreeWithLoops) {
  const Scene scene(GetParam());
  AttentionMasks masks(scene.plan, at::kCPU);
  for (const int64_t layer : {0, 1}) {
    const at::Tensor expected = reference::attention(scene.plan, layer, scene.query, scene.cache);
    const at::Tensor path = path_attention(scene.plan, layer, scene.query, scene.cache);
    const at::Tensor masked = masked_attention(scene.plan, layer, scene.query, scene.cache, masks);
    EXPECT_EQ(path.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::allclose(path, expected, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(masked, expected, 1e-5, 1e-5));
  }
}

TEST_P(AttentionTypes, AWindowHidesAllButTheLastTokensOfEachPath) {
  const Scene scene(GetParam());
  AttentionMasks masks(scene.plan, at::kCPU);
  const at::Tensor all = path_attention(scene.plan, 0, scene.query, scene.cache);
  for (const int64_t window : {1, 2, 3, 6, 20, 100}) {
    const at::Tensor expected =
        reference::attention(scene.plan, 0, scene.query, scene.cache, window);
    const at::Tensor path = path_attention(scene.plan, 0, scene.query, scene.cache, window);
    const at::Tensor masked =
        masked_attention(scene.plan, 0, scene.query, scene.cache, masks, window);
    EXPECT_TRUE(at::allclose(path, expected, 1e-5, 1e-5)) << window;
    EXPECT_TRUE(at::allclose(masked, expected, 1e-5, 1e-5)) << window;
    EXPECT_EQ(at::allclose(path, all, 1e-3, 1e-3), window == 100) << window;
  }
}

TEST_P(AttentionTypes, WriteCachePutsRowsAtTheirPlacesOnly) {
  Scene scene(GetParam());
  const auto everything = [&] {  // [2 sides, L, S, G, 64, D]
    std::vector<at::Tensor> all;
    for (const KvSide side : {KvSide::Keys, KvSide::Values})
      for (const int64_t layer : {0, 1})
        for (const int32_t slot : {0, 1}) all.push_back(scene.cache.read(side, layer, slot, 64));
    const at::Tensor rows = at::stack(all);
    return rows.view({2, 2, 2, rows.size(1), rows.size(2), rows.size(3)});
  };
  const ModelConfig config = tiny_config();
  ASSERT_EQ(config.num_layers, 2);
  const at::Tensor expected = everything();
  const at::Tensor keys = normal({scene.plan.size(), config.num_kv_heads, config.head_size}, 4);
  const at::Tensor values = normal({scene.plan.size(), config.num_kv_heads, config.head_size}, 5);
  write_cache(scene.plan, 1, keys, values, scene.cache);
  for (int64_t i = 0; i < scene.plan.size(); ++i) {
    const BatchToken& row = scene.plan.rows[static_cast<size_t>(i)];
    for (int64_t group = 0; group < config.num_kv_heads; ++group) {
      expected[0][1][row.slot][group][row.cache_row].copy_(keys[i][group]);
      expected[1][1][row.slot][group][row.cache_row].copy_(values[i][group]);
    }
  }
  EXPECT_TRUE(at::equal(everything(), expected));
}

TEST_P(AttentionTypes, BlocksGiveTheBitsOfWholeSlots) {
  const Scene paged(GetParam()), whole(GetParam(), /*whole_slots=*/true);
  AttentionMasks masks(paged.plan, at::kCPU);
  for (const int64_t window : {0, 20}) {
    EXPECT_TRUE(at::equal(path_attention(paged.plan, 1, paged.query, paged.cache, window),
                          path_attention(whole.plan, 1, whole.query, whole.cache, window)));
    EXPECT_TRUE(
        at::equal(masked_attention(paged.plan, 1, paged.query, paged.cache, masks, window),
                  masked_attention(whole.plan, 1, whole.query, whole.cache, masks, window)));
  }
}

TEST_P(AttentionTypes, ANodesSumsAreTheBitsOfItsPathRunAlone) {
  Scene scene(GetParam());
  const std::vector<int32_t> path{0, 2, 4, 5};  // of the tree in slot 1
  const at::Tensor in_tree = path_attention(scene.plan, 0, scene.query, scene.cache)[5];
  scene.cache.commit(1, path);
  scene.cache.rewind(1, 29 + 3);
  const std::vector<TokenId> last{1};
  const Segment alone{1, last, {}};
  const at::Tensor contiguous = path_attention(plan_forward({&alone, 1}, scene.cache), 0,
                                               scene.query.narrow(0, 5, 1), scene.cache)[0];
  EXPECT_TRUE(at::equal(in_tree, contiguous));
}

}  // namespace
}  // namespace medusa
