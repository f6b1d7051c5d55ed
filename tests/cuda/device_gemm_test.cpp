// Skinny GEMMs on a GPU against float64, and row by row against themselves.
#include "backbone/cuda/device_gemm.h"

#include <numeric>

#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/layer_kernel_choices.h"
#include "tests/cuda/table_test.h"

namespace medusa {
namespace {

using fixtures::normal;

using DeviceGemmTest = TableTest<GemmKernels>;
INSTANTIATE_TEST_SUITE_P(Tables, DeviceGemmTest,
                         table_choices(emulated_gemm_kernels, cuda_gemm_kernels),
                         table_choice_name<GemmKernels>);

/// A weight as GEMMs read it and what its elements are.
struct KnownWeight {
  std::string name;
  StoredDeviceWeight stored;
  at::Tensor elements;  // [n, k] float64
};

constexpr int kNumFormats = 5;

/// Five bits of 8 with mins: what Q5_1 keeps.
QuantizedMatrix five_bits(const at::Tensor& weight) {
  QuantizedMatrix matrix = in_format(weight, {8, 32, true});
  matrix.quants = matrix.quants.bitwise_right_shift(3);
  matrix.scales = matrix.scales * 8;
  return matrix;
}

KnownWeight weight_in(int format, int64_t n, int64_t k, at::Device device) {
  const at::Tensor weight = normal({n, k}, static_cast<uint64_t>(n * 10000 + k)) * 0.05;
  if (format == 0) {
    const at::Tensor elements = weight.to(at::kBFloat16);
    return {"bfloat16", device_weight(elements, device).value(), elements.to(at::kDouble)};
  }
  const auto known = [&](const char* name, const QuantizedMatrix& matrix) {
    return KnownWeight{name, device_weight(matrix, device).value(),
                       dequantize_matrix(matrix).to(at::kDouble)};
  };
  switch (format) {
    case 1:
      return known("8 bits", quantize_matrix(weight));
    case 2:
      return known("8 bits with offsets", five_bits(weight));
    case 3:
      return known("4 bits", in_format(weight, {4, 32, false}));
    default:
      return known("4 bits with offsets", in_format(weight, {4, 32, true}));
  }
}

at::Tensor rows(int64_t m, int64_t k, at::Device device) {
  return normal({m, k}, static_cast<uint64_t>(m * 7 + k)).to(at::kBFloat16).to(device);
}

/// [M, n] float32 on the CPU.
at::Tensor multiply(const DeviceGemm& gemm, const at::Tensor& x) {
  const auto floats = x.options().dtype(at::kFloat);
  const at::Tensor scratch = at::empty({gemm.scratch()}, floats);
  const at::Tensor y = at::full({x.size(0), gemm.num_outputs()}, 1e30F, floats);
  gemm(x, scratch.data_ptr<float>(), y, nullptr);
  return y.cpu();
}

/// Beside what a sum of as large terms may round.
double worst_error(const at::Tensor& y, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor wide = x.cpu().to(at::kDouble), transposed = weight.t();
  const at::Tensor size = wide.abs().matmul(transposed.abs()).add(1e-6);
  return ((y.to(at::kDouble) - wide.matmul(transposed)) / size).abs().max().item<double>();
}

TEST_P(DeviceGemmTest, AgreesWithFloat64ForEveryShape) {
  for (int format = 0; format < kNumFormats; ++format)
    for (const int64_t n : {1, 15, 16, 17, 33, 100})
      for (const int64_t k : {32, 64, 96, 160, 576}) {
        const KnownWeight weight = weight_in(format, n, k, device());
        const DeviceGemm gemm(kernels(), weight.stored);
        for (const int64_t m : {1, 3, 8, 9, 17, 64}) {
          if (m > 9 && k * n > 32 * 200 && n != 33) continue;  // the emulation is slow
          const at::Tensor x = rows(m, k, device());
          EXPECT_LT(worst_error(multiply(gemm, x), x, weight.elements), 1e-6)
              << weight.name << " n " << n << " k " << k << " rows " << m;
        }
      }
}

TEST_P(DeviceGemmTest, AgreesWithFloat64ForALongRow) {
  for (int format = 0; format < kNumFormats; ++format) {
    const KnownWeight weight = weight_in(format, 48, 4608, device());
    const DeviceGemm gemm(kernels(), weight.stored);
    for (const int64_t m : {1, 20}) {
      const at::Tensor x = rows(m, 4608, device());
      EXPECT_LT(worst_error(multiply(gemm, x), x, weight.elements), 1e-6) << weight.name << m;
    }
  }
}

TEST_P(DeviceGemmTest, ARowHasTheSameBitsBesideAnyOthersAndInAnyPlace) {
  constexpr int64_t kInputs = 1056, kOutputs = 40;
  for (int format = 0; format < kNumFormats; ++format) {
    const DeviceGemm gemm(kernels(), weight_in(format, kOutputs, kInputs, device()).stored);
    const at::Tensor x = rows(64, kInputs, device());
    const at::Tensor all = multiply(gemm, x);
    for (const int64_t i : {0, 7, 30, 63})
      EXPECT_TRUE(multiply(gemm, x.narrow(0, i, 1)).equal(all.narrow(0, i, 1))) << format << i;
    for (const int64_t m : {2, 8, 9, 16, 25, 33})
      EXPECT_TRUE(multiply(gemm, x.narrow(0, 0, m)).equal(all.narrow(0, 0, m))) << format << m;
    EXPECT_TRUE(multiply(gemm, x.flip(0).contiguous()).equal(all.flip(0))) << format;
  }
}

TEST_P(DeviceGemmTest, ManyOutputsAreCutIntoFewerParts) {
  for (const int64_t n : {5300, 6300, 12200, 24400}) {  // eight parts to one
    const KnownWeight weight = weight_in(0, n, 160, device());
    const DeviceGemm gemm(kernels(), weight.stored);
    const at::Tensor x = rows(9, 160, device()), all = multiply(gemm, x);
    EXPECT_LT(worst_error(all, x, weight.elements), 1e-6) << n;
    for (const int64_t i : {0, 8})
      EXPECT_TRUE(multiply(gemm, x.narrow(0, i, 1)).equal(all.narrow(0, i, 1))) << n << ' ' << i;
  }
}

TEST_P(DeviceGemmTest, AddsToWhatIsThere) {
  for (int format = 0; format < kNumFormats; ++format)
    for (const int64_t n : {3, 40, 132})
      for (const int64_t m : {1, 9, 70}) {
        const DeviceGemm gemm(kernels(), weight_in(format, n, 160, device()).stored);
        const at::Tensor x = rows(m, 160, device()), before = normal({m, n}, 5);
        const at::Tensor y = before.to(device(), /*non_blocking=*/false, /*copy=*/true);
        const at::Tensor scratch = at::empty({gemm.scratch()}, y.options());
        gemm.add(static_cast<const Bf16*>(x.const_data_ptr()), m, scratch.data_ptr<float>(),
                 y.data_ptr<float>(), nullptr);
        EXPECT_TRUE(y.cpu().equal(before + multiply(gemm, x))) << format << ' ' << n << ' ' << m;
      }
}

/// [M, n / 2] bfloat16 on the CPU.
at::Tensor silu_mul(const DeviceGemm& gemm, const at::Tensor& x) {
  const at::Tensor out =
      at::full({x.size(0), gemm.num_outputs() / 2}, 1e30F, x.options().dtype(at::kBFloat16));
  const at::Tensor scratch = at::empty({gemm.scratch()}, x.options().dtype(at::kFloat));
  gemm.silu_mul(static_cast<const Bf16*>(x.const_data_ptr()), x.size(0), scratch.data_ptr<float>(),
                static_cast<Bf16*>(out.data_ptr()), nullptr);
  return out.cpu();
}

TEST_P(DeviceGemmTest, MultipliesTheRightGateAndUp) {
  for (const int64_t n : {2, 6, 64, 128, 140, 392}) {
    const KnownWeight weight = weight_in(0, n, 96, device());
    const DeviceGemm gemm(kernels(), weight.stored);
    ASSERT_TRUE(gemm.has_silu_mul());
    for (const int64_t m : {1, 12, 64, 67}) {
      const at::Tensor x = rows(m, 96, device()), y = multiply(gemm, x);
      const at::Tensor expected = at::silu(y.narrow(1, 0, n / 2)) * y.narrow(1, n / 2, n / 2),
                       out = silu_mul(gemm, x);
      EXPECT_TRUE(at::allclose(out.to(at::kFloat), expected, 0.004, 1e-6)) << n << ' ' << m;
      EXPECT_TRUE(silu_mul(gemm, x.narrow(0, m - 1, 1)).equal(out.narrow(0, m - 1, 1)));
    }
  }
  EXPECT_FALSE(DeviceGemm(kernels(), weight_in(0, 7, 96, device()).stored).has_silu_mul());
  EXPECT_FALSE(DeviceGemm(kernels(), weight_in(1, 8, 96, device()).stored).has_silu_mul());
}

/// Queries, keys and values behind their GEMM.
struct Placed {
  at::Tensor query, keys, values;  // [R, A, D]; [L, S, G, capacity, D], on the CPU

  bool operator==(const Placed& other) const {
    return same_bits(query, other.query) && same_bits(keys, other.keys) &&
           same_bits(values, other.values);
  }
};

struct QkvCase {
  int64_t heads, groups, size, rows;
  bool bias = true, uses_rope = true;
};

constexpr int64_t kQkvInputs = 96, kQkvCapacity = 80;

/// @param layers  the kernel that places what the GEMM leaves; null: the GEMM does so itself.
Placed place(const DeviceGemm& gemm, const QkvCase& c, const at::Tensor& x, at::Device device,
             const LayerKernels* layers) {
  std::vector<RowSpec> specs;
  for (int32_t i = 0; i < c.rows; ++i)
    specs.push_back({.slot = i % 2, .position = (i * 5) % 30, .cache_row = i});
  const DeviceRowsOf row_table(specs, device);
  const auto known = [&](std::vector<int64_t> sizes, uint64_t seed) {
    return normal(sizes, seed).to(device);
  };
  const auto filled = [&](std::vector<int64_t> sizes) {
    return at::full(sizes, 7.0F, at::kBFloat16).to(device);
  };
  const at::Tensor bias = known({gemm.num_outputs()}, 12), cos = known({30, c.size / 2}, 15),
                   sin = known({30, c.size / 2}, 16);
  const Placed out{filled({c.rows, c.heads, c.size}),
                   filled({2, 2, c.groups, kQkvCapacity, c.size}),
                   filled({2, 2, c.groups, kQkvCapacity, c.size})};
  RopeAndCacheArgs args{.rows = row_table.view(),
                        .bias = c.bias ? elements<float>(bias) : nullptr,
                        .cos = c.uses_rope ? elements<float>(cos) : nullptr,
                        .sin = c.uses_rope ? elements<float>(sin) : nullptr,
                        .num_heads = c.heads,
                        .cache = cache_view(out.keys, out.values),
                        .layer = 1,
                        .query = elements<Bf16>(out.query)};
  if (layers == nullptr) {
    EXPECT_TRUE(gemm.has_rope_and_cache(args));
    gemm.rope_and_cache(elements<Bf16>(x), c.rows, nullptr, args, nullptr);
  } else {
    const at::Tensor sums = multiply(gemm, x).to(device);
    args.qkv = elements<float>(sums);
    layers->rope_and_cache(args, nullptr);
  }
  return {out.query.cpu(), out.keys.cpu(), out.values.cpu()};
}

/// Heads end in the middle of a block, fill it, and are two to a block.
const std::vector<QkvCase>& qkv_cases() {
  static const std::vector<QkvCase> kCases{{9, 3, 64, 1},
                                           {9, 3, 64, 13},
                                           {1, 1, 64, 70},
                                           {2, 1, 128, 12},
                                           {3, 2, 64, 20, false},
                                           {3, 2, 128, 64, false},
                                           {3, 2, 32, 9, true, false}};
  return kCases;
}

TEST_P(DeviceGemmTest, PlacesHeadsAsTheKernelBehindItDoes) {
  const LayerKernels& layers =
      device().is_cuda() ? *cuda_layer_kernels() : *emulated_layer_kernels();
  for (const QkvCase& c : qkv_cases()) {
    const int64_t n = (c.heads + 2 * c.groups) * c.size;
    const DeviceGemm gemm(kernels(), weight_in(0, n, kQkvInputs, device()).stored);
    const at::Tensor x = rows(c.rows, kQkvInputs, device());
    EXPECT_TRUE(place(gemm, c, x, device(), nullptr) == place(gemm, c, x, device(), &layers))
        << c.heads << ' ' << c.size << ' ' << c.rows;
  }
}

TEST_P(DeviceGemmTest, SaysWhichHeadsItPlaces) {
  const DeviceGemm gemm(kernels(), weight_in(0, 384, kQkvInputs, device()).stored),
      blocks(kernels(), weight_in(1, 384, kQkvInputs, device()).stored);
  RopeAndCacheArgs args;
  args.cache.head_size = 64;
  EXPECT_TRUE(gemm.has_rope_and_cache(args));
  EXPECT_FALSE(blocks.has_rope_and_cache(args));
  args.cache.head_size = 96;  // the second one would lie in two blocks
  EXPECT_FALSE(gemm.has_rope_and_cache(args));
  args.cache.head_size = 64;
  const float norm = 1;
  args.key_norm = &norm;  // needs the whole head
  EXPECT_FALSE(gemm.has_rope_and_cache(args));
}

TEST(DeviceGemm, WithoutClustersTheBitsAreTheSame) {
  for (const QkvCase& c : qkv_cases()) {
    const DeviceGemm gemm(
        *emulated_gemm_kernels(),
        weight_in(0, (c.heads + 2 * c.groups) * c.size, kQkvInputs, at::kCPU).stored);
    const at::Tensor x = rows(c.rows, kQkvInputs, at::kCPU);
    const Placed placed = place(gemm, c, x, at::kCPU, nullptr);
    set_emulated_clusters(false);
    EXPECT_TRUE(place(gemm, c, x, at::kCPU, nullptr) == placed) << c.heads << ' ' << c.size;
    set_emulated_clusters(true);
  }
  for (const auto& [n, k] : {std::pair{140, 32}, {140, 160}, {140, 1056}, {5300, 288}}) {
    const DeviceGemm gemm(*emulated_gemm_kernels(), weight_in(0, n, k, at::kCPU).stored);
    for (const int64_t m : {1, 13, 30, 64}) {
      if (n > 1000 && m > 13) continue;  // the emulation is slow
      const at::Tensor x = rows(m, k, at::kCPU), y = multiply(gemm, x), out = silu_mul(gemm, x);
      set_emulated_clusters(false);
      EXPECT_TRUE(multiply(gemm, x).equal(y)) << k << ' ' << m;
      EXPECT_TRUE(silu_mul(gemm, x).equal(out)) << k << ' ' << m;
      set_emulated_clusters(true);
    }
  }
}

TEST_P(DeviceGemmTest, ManyRowsHaveTheBitsOfFew) {
  for (int format = 0; format < kNumFormats; ++format) {
    const KnownWeight weight = weight_in(format, 140, 576, device());
    const DeviceGemm gemm(kernels(), weight.stored);
    const at::Tensor x = rows(270, 576, device());
    const at::Tensor y = multiply(gemm, x);
    EXPECT_LT(worst_error(y, x, weight.elements), 1e-6);
    for (const int64_t first : {0, 64, 128, 206})
      EXPECT_TRUE(multiply(gemm, x.narrow(0, first, 64)).equal(y.narrow(0, first, 64))) << first;
    EXPECT_EQ(multiply(gemm, x.narrow(0, 0, 0)).size(0), 0);
  }
}

/// [M, 4] whose sums are the rows' sums of squares, of any size.
at::Tensor on_cpu_squares(const at::Tensor& x) {
  return x.cpu().to(at::kFloat).square().sum(1, true) * at::tensor({0.5F, 0.25F, 0.25F, 3.0F});
}

/// What Add leaves of a norm behind it.
struct BegunNorm {
  at::Tensor y, scaled, squares;  // [M, n], the same, [M, 4], on the CPU
};

BegunNorm add_and_begin_norm(const DeviceGemm& gemm, const at::Tensor& x, const at::Tensor& before,
                             const at::Tensor& norm) {
  const at::Device device = x.device();
  const auto on_device = [&](const at::Tensor& t) { return t.to(device, false, /*copy=*/true); };
  const at::Tensor y = on_device(before), weight = on_device(norm),
                   scaled = on_device(before.to(at::kBFloat16)),
                   squares = on_device(at::zeros({x.size(0), 4}));
  gemm.add(elements<Bf16>(x), x.size(0), nullptr, elements<float>(y), nullptr,
           {elements<float>(weight), elements<Bf16>(scaled), elements<float>(squares), 4});
  return {y.cpu(), scaled.cpu(), squares.cpu()};
}

TEST_P(DeviceGemmTest, ANormBetweenTwoGemmsIsDoneByBoth) {
  constexpr double kEpsilon = 1e-5;
  for (const int64_t n : {36, 128, 420}) {
    const DeviceGemm first(kernels(), weight_in(0, n, 96, device()).stored),
        plain(kernels(), weight_in(0, 140, 32 * ((n + 31) / 32), device()).stored);
    ASSERT_TRUE(first.folds_norm());
    for (const int64_t m : {1, 9, 64, 140}) {
      const at::Tensor x = rows(m, 96, device()), before = normal({m, n}, 5), norm = normal({n}, 6);
      const BegunNorm begun = add_and_begin_norm(first, x, before, norm);
      EXPECT_TRUE(begun.y.equal(before + multiply(first, x)));
      EXPECT_TRUE(begun.scaled.equal((begun.y * norm).to(at::kBFloat16)));
      EXPECT_TRUE(at::allclose(begun.squares.sum(1), begun.y.square().sum(1), 1e-5));
      const BegunNorm last =
          add_and_begin_norm(first, x.narrow(0, m - 1, 1), before.narrow(0, m - 1, 1), norm);
      EXPECT_TRUE(last.squares.equal(begun.squares.narrow(0, m - 1, 1)));

      // The GEMM behind: of rows that are not divided, beside what it makes of them.
      const int64_t k = plain.num_inputs();
      const at::Tensor rows_behind = rows(m, k, device()),
                       squares = on_cpu_squares(rows_behind).to(device());
      NormedRows normed(elements<Bf16>(rows_behind));
      normed.squares = elements<float>(squares);
      normed.num_squares = 4;
      normed.epsilon = static_cast<float>(kEpsilon);
      const at::Tensor y = at::empty({m, 140}, squares.options());
      plain(normed, m, nullptr, elements<float>(y), nullptr);
      const at::Tensor scale =
          (squares.cpu().to(at::kDouble).sum(1, true) / static_cast<double>(k) + kEpsilon).rsqrt();
      EXPECT_TRUE(at::allclose(y.cpu().to(at::kDouble),
                               multiply(plain, rows_behind).to(at::kDouble) * scale, 1e-5, 1e-6))
          << n << ' ' << m;
    }
  }
  EXPECT_FALSE(DeviceGemm(kernels(), weight_in(0, 7, 96, device()).stored).folds_norm());
  EXPECT_FALSE(DeviceGemm(kernels(), weight_in(1, 8, 96, device()).stored).folds_norm());
}

TEST_P(DeviceGemmTest, EveryQuantAndScaleIsReadExactly) {
  // Output o multiplies a row with a single 1: what comes back is one number of the weight.
  QuantizedMatrix bytes{.format = {8, 32, false}, .num_inputs = 256};
  bytes.quants = at::arange(256, at::kByte).expand({8, 256}).contiguous();
  bytes.scales = at::tensor({1.0, 0.5, 0x1.0p-24, 0x1.8p-15, 65504.0, -2.0, 0.0, 1.0 / 3})
                     .to(at::kHalf)
                     .unsqueeze(1)
                     .expand({8, 8})
                     .contiguous();
  QuantizedMatrix nibbles = bytes;
  nibbles.format = {4, 32, true};
  nibbles.quants = bytes.quants.bitwise_and(15);
  nibbles.mins = bytes.scales.flip(0).contiguous();
  const at::Tensor x = at::eye(256, at::kFloat).to(at::kBFloat16).to(device());
  for (const QuantizedMatrix& matrix : {bytes, nibbles}) {
    const DeviceGemm gemm(kernels(), device_weight(matrix, device()).value());
    const at::Tensor expected = dequantize_matrix(matrix).t();
    const at::Tensor y = multiply(gemm, x);
    if (matrix.format.bits == 8)
      EXPECT_TRUE(y.equal(expected));
    else  // a quant's 16 leaves in float32
      EXPECT_TRUE(at::allclose(y, expected, 1e-6, 0.02)) << (y - expected).abs().max();
  }
}

TEST(DeviceWeight, IsExactOrRefused) {
  const at::Tensor weight = normal({6, 64}, 1) * 0.05;
  EXPECT_FALSE(device_weight(normal({6, 40}, 1), at::kCPU)) << "k is not a multiple of 32";
  EXPECT_FALSE(device_weight(quantize_matrix(normal({6, 40}, 1)), at::kCPU));
  EXPECT_FALSE(device_weight(in_format(weight, {8, 16, false}), at::kCPU)) << "blocks of 16";
  EXPECT_FALSE(device_weight(in_format(weight + 1, {8, 32, true}), at::kCPU))
      << "levels up to 255, and offsets of more digits when 128 of them go";
  QuantizedMatrix huge = in_format(weight, {4, 32, false});
  huge.scales.fill_(60000);
  EXPECT_FALSE(device_weight(huge, at::kCPU)) << "an offset of -8 · 60000";
}

TEST(DeviceWeight, MovesTheQuantsOfStackedMatrices) {
  // Beside a weight with mins one without gets some: -128 times its scale, and quants to 255.
  const at::Tensor weight = normal({6, 64}, 1) * 0.05;
  const QuantizedMatrix stacked =
      stack_quantized({quantize_matrix(weight), in_format(weight, {4, 32, true})});
  ASSERT_TRUE(stacked.format.has_mins);
  const auto stored = device_weight(stacked, at::kCPU);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->format, DeviceFormat::Int8);
  const at::Tensor quants = stored->elements.to(at::kFloat).view({12, 2, 32});
  const at::Tensor elements = quants * stored->scales.to(at::kFloat).unsqueeze(-1) +
                              stored->mins.to(at::kFloat).unsqueeze(-1);
  EXPECT_TRUE(at::allclose(elements.view({12, 64}), dequantize_matrix(stacked), 1e-5, 1e-6));
}

}  // namespace
}  // namespace medusa
