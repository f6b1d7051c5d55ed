// The kernels of a step alone, without LibTorch: a program of 2 MB that measures in seconds, for
// whoever changes a kernel.
//
//   ninja kernel_speed && ./kernel_speed [bits] [gemms] [steps] [small]
//
// bits: whether rows have the same bits beside any others, and how far sums are from a plain one;
// gemms: one of many in a captured graph, each of other weights; steps: passes of the 7B shape and
// what their parts take when they are captured alone; small: the same of the 135M shape. Weights
// are random; rows are a tree whose nodes have three children each.
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "kernel_speed: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

__global__ void fill_bf16(uint16_t* to, size_t n, float scale, unsigned seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    unsigned h = static_cast<unsigned>(i) * 2654435761U ^ seed;
    h = (h ^ h >> 16) * 0x7feb352dU;
    h = (h ^ h >> 15) * 0x846ca68bU;
    const float x = static_cast<float>(static_cast<int>(h >> 16) - 32768) / 32768 * scale;
    to[i] = static_cast<uint16_t>(__float_as_uint(x) >> 16);
  }
}
__global__ void fill_float(float* to, size_t n, float value) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    to[i] = value * (1 + 0.1F * (static_cast<float>(i % 7) - 3));
}
/// y = x wᵀ, a thread for each number.
__global__ void plain_gemm(const Bf16* w, const Bf16* x, float* y, int n, int k) {
  const int o = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (o >= n) return;
  const auto number = [](Bf16 b) { return __uint_as_float(unsigned{b.bits} << 16); };
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum += number(w[int64_t{o} * k + i]) * number(x[int64_t{row} * k + i]);
  y[int64_t{row} * n + o] = sum;
}

/// Memory of the device.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : size_(n) { check(cudaMalloc(&data_, n * sizeof(T) + 256)); }
  explicit Buffer(const std::vector<T>& from) : Buffer(from.size()) {
    check(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { cudaFree(data_); }

  T* get() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> host(size_t n) const {
    std::vector<T> out(n);
    check(cudaMemcpy(out.data(), data_, n * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

Buffer<Bf16> random_bf16(size_t n, float scale, unsigned seed) {
  Buffer<Bf16> out(n);
  fill_bf16<<<1024, 256>>>(reinterpret_cast<uint16_t*>(out.get()), n, scale, seed);
  return out;
}
Buffer<float> floats(size_t n, float value) {
  Buffer<float> out(n);
  fill_float<<<1024, 256>>>(out.get(), n, value);
  return out;
}
template <typename T>
Buffer<T> zeros(size_t n) {
  Buffer<T> out(n);
  check(cudaMemset(out.get(), 0, n * sizeof(T)));
  return out;
}

/// The median time of a captured graph, µs. @param start  starts kernels on a stream.
template <typename Start>
double median_us(const Start& start, int samples = 15) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaStreamCreate(&stream));
  start(stream);
  check(cudaStreamSynchronize(stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  start(stream);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&runnable, graph, 0));
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  for (int i = 0; i < 3; ++i) check(cudaGraphLaunch(runnable, stream));
  std::vector<float> ms(static_cast<size_t>(samples));
  for (float& each : ms) {
    check(cudaEventRecord(begin, stream));
    check(cudaGraphLaunch(runnable, stream));
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    check(cudaEventElapsedTime(&each, begin, end));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  std::nth_element(ms.begin(), ms.begin() + samples / 2, ms.end());
  return 1e3 * static_cast<double>(ms[static_cast<size_t>(samples / 2)]);
}

DeviceWeight weight_of(const Bf16* elements, int64_t n, int64_t k) {
  DeviceWeight weight;
  weight.elements = elements;
  weight.num_outputs = n;
  weight.num_inputs = k;
  return weight;
}

void compare_bits() {
  constexpr int kMostRows = 300;
  for (const auto& [n, k] : {std::pair{4096, 4096}, {1536, 576}, {12288, 4096}, {300, 1056}}) {
    const size_t outputs = size_t{kMostRows} * static_cast<size_t>(n);
    const Buffer<Bf16> weight = random_bf16(static_cast<size_t>(n) * k, 0.05F, 7),
                       x = random_bf16(size_t{kMostRows} * k, 1, 9);
    const Buffer<float> y(outputs), plain(outputs);
    plain_gemm<<<dim3((n + 127) / 128, kMostRows), 128>>>(weight.get(), x.get(), plain.get(), n, k);
    const std::vector<float> expected = plain.host(outputs);
    std::vector<float> alone;
    for (const int rows : {1, 8, 16, 32, 64, 128, kMostRows}) {
      check(cudaMemset(y.get(), 0x7F, outputs * sizeof(float)));
      SkinnyGemmArgs args;
      args.weight = weight_of(weight.get(), n, k);
      args.x = x.get();
      args.num_rows = rows;
      args.y = y.get();
      cuda_gemm_kernels()->skinny(args, nullptr);
      const std::vector<float> sums = y.host(static_cast<size_t>(rows) * n);
      float error = 0, largest = 0;
      for (size_t i = 0; i < sums.size(); ++i) {
        error = std::max(error, std::fabs(sums[i] - expected[i]));
        largest = std::max(largest, std::fabs(expected[i]));
      }
      if (alone.empty()) alone = sums;
      const bool same = std::memcmp(alone.data(), sums.data(), alone.size() * sizeof(float)) == 0;
      std::printf("%5d x %-5d %3d rows: error %.1e of %.1f, the first row has %s bits\n", n, k,
                  rows, error, largest, same ? "the same" : "OTHER");
    }
  }
}

struct Shape {
  const char* name;
  int hidden, heads, groups, head_size, mlp, layers, vocab;

  int qkv() const { return (heads + 2 * groups) * head_size; }
};
constexpr Shape kLarge{"llama-2-7b", 4096, 32, 32, 128, 11008, 32, 32000};
constexpr Shape kSmall{"smollm2-135m", 576, 9, 3, 64, 1536, 30, 49152};

void time_gemms(const Shape& s) {
  constexpr size_t kCopiedBytes = size_t{1200} << 20;  // far more than a cache holds
  struct Case {
    const char* name;
    int n, k;
    GemmEnd end;
  };
  for (const Case& c : {Case{"qkv", s.qkv(), s.hidden, GemmEnd::Store},
                        {"output", s.hidden, s.heads * s.head_size, GemmEnd::Add},
                        {"gate_up", 2 * s.mlp, s.hidden, GemmEnd::SiluMul},
                        {"down", s.hidden, s.mlp, GemmEnd::Add},
                        {"lm_head", s.vocab, s.hidden, GemmEnd::Store}}) {
    constexpr size_t kMostRows = 512;
    const size_t each = static_cast<size_t>(c.n) * c.k;
    const size_t copies = std::clamp<size_t>(kCopiedBytes / (2 * each), 2, 64);
    const Buffer<Bf16> weights = random_bf16(each * copies, 0.02F, 3),
                       x = random_bf16(kMostRows * c.k, 1, 4), out(kMostRows * c.n);
    const Buffer<float> y = floats(kMostRows * c.n, 0);
    std::printf("%-8s %6d x %-5d", c.name, c.n, c.k);
    for (const int rows : {1, 8, 16, 32, 64, 512}) {
      const auto start = [&](DeviceStream stream) {
        for (size_t i = 0; i < copies; ++i) {
          SkinnyGemmArgs args;
          args.weight = weight_of(weights.get() + i * each, c.n, c.k);
          args.x = x.get();
          args.num_rows = rows;
          args.end = c.end;
          args.y = y.get();
          args.out = out.get();
          cuda_gemm_kernels()->skinny(args, stream);
        }
      };
      const double us = median_us(start, 9) / static_cast<double>(copies);
      std::printf("  %d: %.2f us", rows, us);
      if (rows > 64) std::printf(" (%.0f TFLOP/s)", 2e-6 * static_cast<double>(each) * rows / us);
    }
    std::printf("\n");
  }
}

/// A tree of rows behind a context, of one sequence in slot 0.
struct TreeRows {
  Buffer<int32_t> tokens, slots, starts, positions, cache_rows;
  Buffer<uint64_t> paths;
  Buffer<DeviceTile> tiles;

  static TreeRows of(int rows, int context, int tile_rows) {
    std::vector<int32_t> positions, cache_rows;
    std::vector<uint64_t> paths;
    std::vector<DeviceTile> tiles;
    for (int i = 0; i < rows; ++i) {
      paths.push_back((i == 0 ? 0 : paths[static_cast<size_t>((i - 1) / 3)]) | uint64_t{1} << i);
      positions.push_back(context + std::popcount(paths.back()) - 1);
      cache_rows.push_back(context + i);
    }
    for (int i = 0; i < rows; i += tile_rows) tiles.push_back({i, std::min(tile_rows, rows - i)});
    const auto all = [&](int32_t x) { return Buffer(std::vector<int32_t>(paths.size(), x)); };
    return {all(5),        all(0),       all(context), Buffer(positions), Buffer(cache_rows),
            Buffer(paths), Buffer(tiles)};
  }
  DeviceRows view() const {
    return {tokens.get(),
            slots.get(),
            starts.get(),
            positions.get(),
            cache_rows.get(),
            paths.get(),
            static_cast<int32_t>(paths.size())};
  }
};

enum Parts : unsigned { kGemms = 1, kAttention = 2, kEnds = 4, kAll = 7 };

/// Passes of a model of this shape.
class Model {
 public:
  static constexpr int kMostRows = 64, kCapacity = 4096;

  explicit Model(const Shape& shape)
      : s_(shape),
        num_squares_((shape.hidden + 511) / 512 * 4),
        embedding_(random_bf16(size_of(shape.vocab, shape.hidden), 0.02F, 5)),
        lm_head_(random_bf16(size_of(shape.vocab, shape.hidden), 0.02F, 6)),
        norm_(floats(static_cast<size_t>(shape.hidden), 1)),
        x_(size_of(kMostRows, shape.hidden)),
        logits_(size_of(kMostRows, shape.vocab)),
        squares_(zeros<float>(size_of(kMostRows, num_squares_))),
        normed_(size_of(kMostRows, shape.hidden)),
        query_(size_of(kMostRows, shape.heads * shape.head_size)),
        attended_(size_of(kMostRows, shape.heads * shape.head_size)),
        activated_(size_of(kMostRows, shape.mlp)),
        keys_(random_bf16(cache_size(), 0.5F, 8)),
        values_(random_bf16(cache_size(), 0.5F, 9)),
        cos_(floats(size_of(kCapacity, shape.head_size), 1)),
        sin_(floats(size_of(kCapacity, shape.head_size), 0.1F)),
        scratch_(static_cast<size_t>(cuda_layer_kernels()->attention_scratch(
            kMostRows, shape.heads, shape.head_size, kCapacity))),
        arrived_(zeros<int32_t>(size_of(kMostRows, shape.groups))) {
    const auto add = [&](int n, int k, unsigned seed) {
      weights_.push_back(random_bf16(size_of(n, k), 0.02F, seed));
      bytes_ += 2 * size_of(n, k);
    };
    for (int i = 0; i < s_.layers; ++i) {
      add(s_.qkv(), s_.hidden, 1);
      add(s_.hidden, s_.heads * s_.head_size, 2);
      add(2 * s_.mlp, s_.hidden, 3);
      add(s_.hidden, s_.mlp, 4);
    }
    bytes_ += 2 * lm_head_.size();
  }

  size_t bytes() const { return bytes_; }

  void start(const TreeRows& tree, int context, unsigned parts, DeviceStream stream) const {
    const LayerKernels& kernels = *cuda_layer_kernels();
    const DeviceRows rows = tree.view();
    if ((parts & kEnds) != 0) {
      kernels.embed({rows, embedding_.get(), s_.hidden, x_.get()}, stream);
      norm(rows.count, squares_.get(), stream);
    }
    for (int layer = 0; layer < s_.layers; ++layer) {
      const Buffer<Bf16>* weights = &weights_[static_cast<size_t>(4 * layer)];
      if ((parts & kGemms) != 0) {
        SkinnyGemmArgs args = args_of(weights[0], s_.qkv(), s_.hidden, rows.count);
        args.x = normed();
        args.end = GemmEnd::RopeAndCache;
        args.place.rows = rows;
        args.place.cos = cos_.get();
        args.place.sin = sin_.get();
        args.place.num_heads = s_.heads;
        args.place.cache = cache();
        args.place.layer = layer;
        args.place.query = query_.get();
        cuda_gemm_kernels()->skinny(args, stream);
      }
      if ((parts & kAttention) != 0) attend(tree, context, layer, stream);
      if ((parts & kGemms) != 0) {
        add(weights[1], s_.heads * s_.head_size, attended_.get(), rows.count, stream);
        SkinnyGemmArgs args = args_of(weights[2], 2 * s_.mlp, s_.hidden, rows.count);
        args.x = normed();
        args.end = GemmEnd::SiluMul;
        args.out = activated_.get();
        cuda_gemm_kernels()->skinny(args, stream);
        add(weights[3], s_.mlp, activated_.get(), rows.count, stream);
      }
    }
    if ((parts & kEnds) == 0) return;
    norm(rows.count, nullptr, stream);
    SkinnyGemmArgs args = args_of(lm_head_, s_.vocab, s_.hidden, rows.count);
    args.x = normed_.get();
    args.y = logits_.get();
    cuda_gemm_kernels()->skinny(args, stream);
  }

 private:
  static size_t size_of(int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); }
  size_t cache_size() const {
    return size_of(s_.layers, s_.groups) * size_of(kCapacity, s_.head_size);
  }
  DeviceCache cache() const {
    return {keys_.get(), values_.get(), s_.layers, 1, s_.groups, kCapacity, s_.head_size};
  }
  NormedRows normed() const {
    NormedRows rows(normed_.get());
    rows.squares = squares_.get();
    rows.num_squares = num_squares_;
    rows.epsilon = 1e-5F;
    return rows;
  }
  static SkinnyGemmArgs args_of(const Buffer<Bf16>& weight, int n, int k, int rows) {
    SkinnyGemmArgs args;
    args.weight = weight_of(weight.get(), n, k);
    args.num_rows = rows;
    return args;
  }
  /// x_ += rows wᵀ, and what the norm behind needs.
  void add(const Buffer<Bf16>& weight, int k, const Bf16* rows, int num_rows,
           DeviceStream stream) const {
    SkinnyGemmArgs args = args_of(weight, s_.hidden, k, num_rows);
    args.x = rows;
    args.end = GemmEnd::Add;
    args.y = x_.get();
    args.behind = {norm_.get(), normed_.get(), squares_.get(), num_squares_};
    cuda_gemm_kernels()->skinny(args, stream);
  }
  void norm(int rows, float* squares, DeviceStream stream) const {
    cuda_layer_kernels()->norm(
        {x_.get(), norm_.get(), 1e-5F, rows, s_.hidden, normed_.get(), squares, num_squares_},
        stream);
  }
  void attend(const TreeRows& tree, int context, int layer, DeviceStream stream) const {
    TreeAttentionArgs args;
    args.rows = tree.view();
    args.tiles = tree.tiles.get();
    args.num_tiles = static_cast<int32_t>(tree.tiles.size());
    args.tile_rows = cuda_layer_kernels()->tile_rows(s_.heads / s_.groups);
    args.query = query_.get();
    args.num_heads = s_.heads;
    args.cache = cache();
    args.layer = layer;
    // As a captured step has it: from 256 on, doubling.
    args.max_context = static_cast<int64_t>(std::bit_ceil(static_cast<unsigned>(context + 64)));
    args.scratch = scratch_.get();
    args.arrived = arrived_.get();
    args.out = attended_.get();
    cuda_layer_kernels()->attend(args, stream);
  }

  Shape s_;
  int num_squares_;
  std::vector<Buffer<Bf16>> weights_;  // of each layer QKV, output, gate and up, down
  Buffer<Bf16> embedding_, lm_head_;
  Buffer<float> norm_, x_, logits_, squares_;
  Buffer<Bf16> normed_, query_, attended_, activated_, keys_, values_;
  Buffer<float> cos_, sin_, scratch_;
  Buffer<int32_t> arrived_;
  size_t bytes_ = 0;
};

void time_steps(const Shape& shape, const std::vector<int>& contexts) {
  const Model model(shape);
  for (const int context : contexts) {
    double one = 0;
    for (const int rows : {1, 8, 16, 32, 64}) {
      const TreeRows tree =
          TreeRows::of(rows, context, cuda_layer_kernels()->tile_rows(shape.heads / shape.groups));
      const auto us = [&](unsigned parts) {
        return median_us([&](DeviceStream stream) { model.start(tree, context, parts, stream); });
      };
      const double all = us(kAll);
      if (rows == 1) one = all;
      std::printf(
          "%s, context %d, %2d rows: %7.1f us, %.2f of one, %.0f GB/s; alone: GEMMs %.1f, "
          "attention %.1f\n",
          shape.name, context, rows, all, all / one,
          1e-3 * static_cast<double>(model.bytes()) / all, us(kGemms), us(kAttention));
    }
  }
}

}  // namespace
}  // namespace medusa

int main(int count, char** words) {
  using namespace medusa;
  const std::vector<std::string> wanted(words + 1, words + count);
  const auto wants = [&](const char* part) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), part) != wanted.end();
  };
  if (wants("bits")) compare_bits();
  if (wants("gemms")) time_gemms(kLarge);
  if (wants("steps")) time_steps(kLarge, {512, 2048});
  if (wants("small")) time_steps(kSmall, {512});
}
