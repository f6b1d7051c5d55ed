// The kernels of a layer besides attention, against LibTorch's ops.
#include "backbone/cuda/layer_kernels.h"

#include "backbone/reference_layer.h"
#include "backbone/rope.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/cuda/layer_kernel_choices.h"

namespace medusa {
namespace {

using fixtures::normal;

using LayerKernelsTest = LayerKernelTest;
INSTANTIATE_TEST_SUITE_P(Choices, LayerKernelsTest, kernel_choices(),
                         table_choice_name<LayerKernels>);

/// Within the rounding to bfloat16 of float32 numbers that agree.
void expect_rounded(const at::Tensor& bf16, const at::Tensor& exact, const std::string& what) {
  ASSERT_EQ(bf16.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(bf16.cpu().to(at::kFloat), exact, /*rtol=*/0.004, /*atol=*/1e-6))
      << what << ": " << (bf16.cpu().to(at::kFloat) - exact).abs().max().item<float>();
}

TEST_P(LayerKernelsTest, EmbedUpcastsTheTokensRows) {
  for (const int64_t hidden : {8, 64, 1032}) {
    const at::Tensor embedding = normal({11, hidden}, 1).to(at::kBFloat16);
    const std::vector<int32_t> tokens{10, 0, 3, 3};
    std::vector<RowSpec> rows;
    for (const int32_t token : tokens) rows.push_back({.token = token});
    const DeviceRowsOf on_device(rows, device());
    const at::Tensor weight = to_device(embedding), x = to_device(at::full({4, hidden}, 1e9F));
    kernels().embed({.rows = on_device.view(),
                     .embedding = elements<Bf16>(weight),
                     .hidden_size = hidden,
                     .x = elements<float>(x)},
                    nullptr);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_TRUE(at::equal(x[i].cpu(), embedding[tokens[static_cast<size_t>(i)]].to(at::kFloat)))
          << hidden << ' ' << i;
  }
}

at::Tensor run_norm(const LayerKernels& kernels, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor out = at::full(x.sizes(), 1e9F, x.options().dtype(at::kBFloat16));
  kernels.norm({.x = elements<float>(x),
                .weight = elements<float>(weight),
                .epsilon = 1e-5F,
                .num_rows = x.size(0),
                .hidden_size = x.size(1),
                .out = elements<Bf16>(out)},
               nullptr);
  return out;
}

TEST_P(LayerKernelsTest, NormNormalizes) {
  for (const int64_t hidden : {8, 64, 576, 4096, 4104, 8200}) {
    const at::Tensor x = 3 * normal({5, hidden}, 2), weight = normal({hidden}, 4);
    expect_rounded(run_norm(kernels(), to_device(x), to_device(weight)), rms_norm(x, weight, 1e-5),
                   std::to_string(hidden));
  }
}

TEST_P(LayerKernelsTest, ANormsRowHasItsBitsBesideAnyOthers) {
  const at::Tensor x = to_device(normal({7, 1000}, 5)), weight = to_device(normal({1000}, 7));
  const at::Tensor all = run_norm(kernels(), x, weight);
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_TRUE(same_bits(run_norm(kernels(), x.narrow(0, i, 1), weight), all.narrow(0, i, 1)))
        << i;
}

TEST_P(LayerKernelsTest, ANormMayLeaveTheDivisionToOthers) {
  const at::Tensor x = 3 * normal({3, 1032}, 2), weight = normal({1032}, 4);
  const at::Tensor in = to_device(x), w = to_device(weight),
                   out = to_device(at::full({3, 1032}, 1e9F, at::kBFloat16)),
                   squares = to_device(at::full({3, 12}, 1e9F));
  kernels().norm({.x = elements<float>(in),
                  .weight = elements<float>(w),
                  .num_rows = 3,
                  .hidden_size = 1032,
                  .out = elements<Bf16>(out),
                  .squares = elements<float>(squares),
                  .num_squares = 12},
                 nullptr);
  EXPECT_TRUE(out.cpu().equal((x * weight).to(at::kBFloat16)));
  EXPECT_TRUE(at::allclose(squares.cpu().sum(1), x.square().sum(1), 1e-5));
}

TEST_P(LayerKernelsTest, SiluMulMultipliesTheRightGateAndUp) {
  for (const int64_t size : {8, 96, 1032}) {
    const at::Tensor gate_up = 4 * normal({3, 2 * size}, 8);
    gate_up[0][0] = -200;  // whose exponential is infinite
    const at::Tensor in = to_device(gate_up);
    const at::Tensor out = to_device(at::full({3, size}, 1e9F, at::kBFloat16));
    kernels().silu_mul({.gate_up = elements<float>(in),
                        .num_rows = 3,
                        .mlp_size = size,
                        .out = elements<Bf16>(out)},
                       nullptr);
    const auto halves = gate_up.chunk(2, -1);
    expect_rounded(out, at::silu(halves[0]) * halves[1], std::to_string(size));
  }
}

/// What one layer does to heads, and the plain path's way of doing it.
struct HeadsCase {
  int64_t heads, groups, size;
  bool bias, norms, uses_rope;
};
struct PlacedHeads {
  at::Tensor query, keys, values;  // [R, A, D]; [L, S, G, capacity, D]
};

PlacedHeads run_place(const LayerKernels& kernels, at::Device device, const HeadsCase& c,
                      const std::vector<RowSpec>& rows, const at::Tensor& qkv) {
  const auto on_device = [&](const at::Tensor& x) { return x.to(device, false, /*copy=*/true); };
  const auto n = static_cast<int64_t>(rows.size()), all = c.heads + 2 * c.groups;
  const at::Tensor in = on_device(qkv);
  const at::Tensor bias = c.bias ? on_device(normal({all * c.size}, 12)) : at::Tensor();
  const at::Tensor query_norm = c.norms ? on_device(normal({c.size}, 13)) : at::Tensor();
  const at::Tensor key_norm = c.norms ? on_device(normal({c.size}, 14)) : at::Tensor();
  const at::Tensor cos = c.uses_rope ? on_device(normal({30, c.size / 2}, 15)) : at::Tensor();
  const at::Tensor sin = c.uses_rope ? on_device(normal({30, c.size / 2}, 16)) : at::Tensor();
  const PlacedHeads out{on_device(at::full({n, c.heads, c.size}, 1e9F, at::kBFloat16)),
                        on_device(at::full({2, 3, c.groups, 32, c.size}, 7.0F, at::kBFloat16)),
                        on_device(at::full({2, 3, c.groups, 32, c.size}, 9.0F, at::kBFloat16))};
  const DeviceRowsOf row_table(rows, device);
  kernels.rope_and_cache({.rows = row_table.view(),
                          .qkv = elements<float>(in),
                          .bias = elements<float>(bias),
                          .query_norm = elements<float>(query_norm),
                          .key_norm = elements<float>(key_norm),
                          .epsilon = 1e-5F,
                          .cos = elements<float>(cos),
                          .sin = elements<float>(sin),
                          .num_heads = c.heads,
                          .cache = cache_view(out.keys, out.values),
                          .layer = 1,
                          .query = elements<Bf16>(out.query)},
                         nullptr);
  return {out.query.cpu(), out.keys.cpu(), out.values.cpu()};
}

PlacedHeads plain_place(const HeadsCase& c, const std::vector<RowSpec>& rows,
                        const at::Tensor& qkv) {
  const auto n = static_cast<int64_t>(rows.size()), all = c.heads + 2 * c.groups;
  at::Tensor x = qkv;
  if (c.bias) x = x + normal({all * c.size}, 12);
  const auto parts = x.view({n, all, c.size}).split_with_sizes({c.heads, c.groups, c.groups}, 1);
  std::vector<int64_t> positions;
  for (const RowSpec& row : rows) positions.push_back(row.position);
  const RopeTable table{normal({30, c.size / 2}, 15), normal({30, c.size / 2}, 16)};
  const auto place = [&](at::Tensor part, uint64_t norm_seed) {
    if (c.norms) part = rms_norm(part, normal({c.size}, norm_seed), 1e-5);
    return c.uses_rope ? apply_rope(part, at::tensor(positions, at::kLong), table) : part;
  };
  PlacedHeads out{place(parts[0], 13), at::full({2, 3, c.groups, 32, c.size}, 7.0F),
                  at::full({2, 3, c.groups, 32, c.size}, 9.0F)};
  const at::Tensor key = place(parts[1], 14);
  for (int64_t i = 0; i < n; ++i) {
    const RowSpec& row = rows[static_cast<size_t>(i)];
    out.keys[1][row.slot].select(1, row.cache_row).copy_(key[i]);
    out.values[1][row.slot].select(1, row.cache_row).copy_(parts[2][i]);
  }
  return out;
}

const std::vector<RowSpec>& placed_rows() {
  static const std::vector<RowSpec> kRows{{.slot = 2, .position = 5, .cache_row = 5},
                                          {.slot = 2, .position = 6, .cache_row = 6},
                                          {.slot = 2, .position = 6, .cache_row = 7},
                                          {.slot = 0, .position = 29, .cache_row = 31}};
  return kRows;
}

TEST_P(LayerKernelsTest, RopeAndCacheDoesAsTheReferenceDoes) {
  for (const auto& [heads, groups, size] :
       {std::tuple(4, 2, 32), std::tuple(3, 1, 64), std::tuple(2, 2, 96), std::tuple(8, 1, 128)})
    for (const bool bias : {false, true})
      for (const bool norms : {false, true})
        for (const bool uses_rope : {false, true}) {
          const HeadsCase c{heads, groups, size, bias, norms, uses_rope};
          const at::Tensor qkv = normal({4, int64_t{heads + 2 * groups} * size}, 11);
          const PlacedHeads placed = run_place(kernels(), device(), c, placed_rows(), qkv);
          const PlacedHeads plain = plain_place(c, placed_rows(), qkv);
          const std::string what = std::to_string(size) + (bias ? " bias" : "") +
                                   (norms ? " norms" : "") + (uses_rope ? " turns" : "");
          expect_rounded(placed.query, plain.query, "query " + what);
          expect_rounded(placed.keys, plain.keys, "keys " + what);
          expect_rounded(placed.values, plain.values, "values " + what);
        }
}

TEST_P(LayerKernelsTest, AHeadHasItsBitsBesideAnyRows) {
  const HeadsCase c{4, 2, 96, true, true, true};
  const at::Tensor qkv = normal({4, 8 * 96}, 11);
  const PlacedHeads all = run_place(kernels(), device(), c, placed_rows(), qkv);
  for (size_t i = 0; i < 4; ++i) {
    const RowSpec row = placed_rows()[i];
    const auto at = static_cast<int64_t>(i);
    const PlacedHeads alone = run_place(kernels(), device(), c, {row}, qkv.narrow(0, at, 1));
    const auto place = [&](const at::Tensor& side) {
      return side[1][row.slot].select(1, row.cache_row).contiguous();
    };
    EXPECT_TRUE(same_bits(alone.query[0], all.query[at])) << i;
    EXPECT_TRUE(same_bits(place(alone.keys), place(all.keys))) << i;
    EXPECT_TRUE(same_bits(place(alone.values), place(all.values))) << i;
  }
}

TEST_P(LayerKernelsTest, MoveRowsKeepsAcceptedRowsAndTouchesNoOthers) {
  struct Moved {
    int32_t slot, start;
    std::vector<int32_t> path;
  };
  const std::vector<Moved> all{{3, 0, {0, 1, 2}},        // lie in place
                               {1, 10, {0, 2, 3, 7}},    // overlap
                               {0, 5, {1, 2, 3, 4, 5}},  // each onto the one before
                               {4, 8, {}}};
  constexpr int64_t kMostPath = 6;
  for (const int64_t size : {64, 96}) {
    const at::Tensor keys = normal({3, 5, 3, 32, size}, 21).to(at::kBFloat16);
    const at::Tensor values = normal({3, 5, 3, 32, size}, 22).to(at::kBFloat16);
    at::Tensor expected_keys = keys.clone(), expected_values = values.clone();
    at::Tensor slots = at::zeros({4}, at::kInt), starts = at::zeros({4}, at::kInt),
               counts = at::zeros({4}, at::kInt), paths = at::full({4, kMostPath}, 99, at::kInt);
    for (int64_t b = 0; b < 4; ++b) {
      const Moved& each = all[static_cast<size_t>(b)];
      slots[b] = each.slot;
      starts[b] = each.start;
      counts[b] = static_cast<int32_t>(each.path.size());
      for (size_t j = 0; j < each.path.size(); ++j) {
        const auto to = static_cast<int64_t>(j);
        paths[b][to] = each.path[j];
        for (const auto& [side, from] :
             {std::pair(expected_keys, keys), std::pair(expected_values, values)})
          side.select(1, each.slot)
              .select(2, each.start + to)
              .copy_(from.select(1, each.slot).select(2, each.start + each.path[j]));
      }
    }
    const at::Tensor moved_keys = to_device(keys), moved_values = to_device(values);
    slots = to_device(slots);
    starts = to_device(starts);
    counts = to_device(counts);
    paths = to_device(paths);
    kernels().move_rows({.cache = cache_view(moved_keys, moved_values),
                         .slots = elements<int32_t>(slots),
                         .starts = elements<int32_t>(starts),
                         .counts = elements<int32_t>(counts),
                         .paths = elements<int32_t>(paths),
                         .num_sequences = 4,
                         .max_path = kMostPath},
                        nullptr);
    EXPECT_TRUE(at::equal(moved_keys.cpu(), expected_keys)) << size;
    EXPECT_TRUE(at::equal(moved_values.cpu(), expected_values)) << size;
  }
}

}  // namespace
}  // namespace medusa
