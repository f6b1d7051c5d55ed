#include "tests/cuda/emulated_cuda.h"

#include <ucontext.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/cuda/emulated_kernels.h"

namespace medusa {
namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr int kMostThreads = 2048;  // of a cluster

enum class Waits { Nothing, Warp, Block, Cluster, Done };

struct Copy {
  void* to;
  const void* from;
  int group;
};

struct Product {
  std::function<void()> run;
  int group;
};

struct Fiber {
  std::vector<Copy> copies;  // that have begun and not ended
  int group = 0;             // that is being filled
  std::vector<Product> products;
  int product_group = 0;
  Waits waits = Waits::Nothing;
  bool waited_for_previous = false;  // kernel
  // A fiber that has been started lives on, and calls the body of block after block: contexts ask
  // the kernel for the signal mask, these jumps do not.
  bool started = false;
  ucontext_t start;
  void* place[5];  // __builtin_setjmp's
  std::unique_ptr<char[]> stack;
};

/// The cluster that runs, and what it keeps from cluster to cluster.
struct Scheduler {
  LaunchNotes* notes = nullptr;  // not owned
  EmulatedOrder order = EmulatedOrder::Ascending;
  bool has_clusters = true;
  std::vector<Fiber> fibers;  // the threads of one block, then those of the next
  int threads = 0;            // of a block
  dim3 first_block{0, 0, 0};
  bool read_of_ended = false;  // a block that had ended
  int current = 0;
  ucontext_t home_start;
  void* home[5];
  const std::function<void()>* body = nullptr;
  std::vector<std::vector<uint4>> shared;  // of each block
  struct Warp {
    emulated::Deposits deposits[2];
    int round = 0;  // which of the two is being written
  };
  std::vector<Warp> warps;
};

Scheduler& scheduler() {
  static Scheduler only;
  return only;
}

Fiber& current_fiber() { return scheduler().fibers[static_cast<size_t>(scheduler().current)]; }

// The compiler must not join functions that jump with those they jump to.
[[gnu::noinline]] void go_home() { __builtin_longjmp(scheduler().home, 1); }
[[gnu::noinline]] void go_to(Fiber& fiber) { __builtin_longjmp(fiber.place, 1); }

/// Back to the scheduler until what the fiber waits for has come.
[[gnu::noinline]] void yield(Waits waits) {
  Fiber& fiber = current_fiber();
  fiber.waits = waits;
  if (__builtin_setjmp(fiber.place) == 0) go_home();
}

void run_bodies() {
  for (;;) {
    (*scheduler().body)();
    yield(Waits::Done);
  }
}

/// Runs a fiber until it yields.
[[gnu::noinline]] void resume(int fiber_index) {
  Scheduler& s = scheduler();
  s.current = fiber_index;
  threadIdx = dim3(static_cast<unsigned>(fiber_index % s.threads), 0, 0);
  blockIdx = s.first_block;
  blockIdx.x += static_cast<unsigned>(fiber_index / s.threads);
  if (__builtin_setjmp(s.home) != 0) return;
  Fiber& fiber = current_fiber();
  if (fiber.started) go_to(fiber);
  fiber.started = true;
  swapcontext(&s.home_start, &fiber.start);
}

void prepare(Fiber& fiber) {
  fiber.copies.clear();
  fiber.group = 0;
  fiber.products.clear();
  fiber.product_group = 0;
  fiber.waits = Waits::Nothing;
  fiber.waited_for_previous = false;
  if (fiber.started) return;
  if (!fiber.stack) fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, run_bodies, 0);
}

/// Whether all fibers [begin, end) that are not done wait for the same; then they go on.
bool release(int begin, int end, Waits waits) {
  Scheduler& s = scheduler();
  bool any = false;
  for (int i = begin; i < end; ++i) {
    const Waits each = s.fibers[static_cast<size_t>(i)].waits;
    if (each == Waits::Done) continue;
    if (each != waits) return false;
    any = true;
  }
  for (int i = begin; i < end; ++i) {
    Fiber& fiber = s.fibers[static_cast<size_t>(i)];
    if (fiber.waits == waits) fiber.waits = Waits::Nothing;
  }
  return any;
}

/// Of n turns the one of this number.
int in_order(int turn, int n) {
  return scheduler().order == EmulatedOrder::Ascending ? turn : n - 1 - turn;
}

/// A warp goes on alone as far as it can: until it waits for the block. @returns  whether it did.
/// @param begin, end  its fibers.
bool run_warp(int warp, int begin, int end) {
  Scheduler& s = scheduler();
  bool ran = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (int turn = 0; turn < end - begin; ++turn) {
      const int i = begin + in_order(turn, end - begin);
      if (s.fibers[static_cast<size_t>(i)].waits != Waits::Nothing) continue;
      resume(i);
      moved = true;
    }
    if (release(begin, end, Waits::Warp)) {
      s.warps[static_cast<size_t>(warp)].round ^= 1;
      moved = true;
    }
    ran = ran || moved;
  }
  return ran;
}

}  // namespace

LaunchNotes::LaunchNotes() {
  MEDUSA_ASSERT(scheduler().notes == nullptr);
  scheduler().notes = this;
}
LaunchNotes::~LaunchNotes() { scheduler().notes = nullptr; }

void set_emulated_order(EmulatedOrder order) { scheduler().order = order; }
void set_emulated_clusters(bool has) { scheduler().has_clusters = has; }
bool emulated_clusters() { return scheduler().has_clusters; }

namespace emulated {

bool note(const NotedLaunch& launch) {
  if (scheduler().notes == nullptr) return false;
  scheduler().notes->list.push_back(launch);
  return true;
}

int rank_in_cluster() { return scheduler().current / scheduler().threads; }
void* shared_bytes() { return scheduler().shared[static_cast<size_t>(rank_in_cluster())].data(); }
const void* shared_of_rank(const void* mine, int rank) {
  Scheduler& s = scheduler();
  bool runs = false;
  for (int i = rank * s.threads; i < (rank + 1) * s.threads; ++i)
    runs = runs || s.fibers[static_cast<size_t>(i)].waits != Waits::Done;
  s.read_of_ended = s.read_of_ended || !runs;
  const auto at =
      static_cast<const unsigned char*>(mine) - static_cast<const unsigned char*>(shared_bytes());
  const auto& theirs = scheduler().shared[static_cast<size_t>(rank)];
  return reinterpret_cast<const unsigned char*>(theirs.data()) + at;
}
void wait_for_block() { yield(Waits::Block); }
void wait_for_cluster() { yield(Waits::Cluster); }
void note_wait_for_previous_kernel() { current_fiber().waited_for_previous = true; }

void begin_copy(void* shared, const void* global) {
  Fiber& fiber = current_fiber();
  std::memset(shared, 0xFF, 16);
  fiber.copies.push_back({shared, global, fiber.group});
}
void end_copy_group() { ++current_fiber().group; }
void wait_for_copies(int pending) {
  Fiber& fiber = current_fiber();
  const auto is_over = [&](const Copy& copy) { return copy.group < fiber.group - pending; };
  for (const Copy& copy : fiber.copies) {
    if (!is_over(copy)) continue;
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
  }
  std::erase_if(fiber.copies, is_over);
}

void begin_product(std::function<void()> product) {
  Fiber& fiber = current_fiber();
  fiber.products.push_back({std::move(product), fiber.product_group});
}
void end_product_group() { ++current_fiber().product_group; }
void wait_for_products(int pending) {
  Fiber& fiber = current_fiber();
  const auto is_over = [&](const Product& each) {
    return each.group < fiber.product_group - pending;
  };
  for (const Product& each : fiber.products)
    if (is_over(each)) each.run();
  std::erase_if(fiber.products, is_over);
}

const Deposits& tell_warp(const void* mine, size_t size) {
  Scheduler& s = scheduler();
  const int thread = s.current % s.threads, block_warps = (s.threads + kWarp - 1) / kWarp;
  Scheduler::Warp& warp =
      s.warps[static_cast<size_t>(s.current / s.threads * block_warps + thread / kWarp)];
  Deposits& deposits = warp.deposits[warp.round];
  std::memcpy(deposits[thread % kWarp], mine, size);
  yield(Waits::Warp);
  return deposits;
}

void run_cluster(int blocks, int threads, size_t shared_bytes, const std::function<void()>& body) {
  const int all = blocks * threads;
  MEDUSA_ASSERT(blocks > 0 && threads > 0 && all <= kMostThreads, blocks, threads);
  Scheduler& s = scheduler();
  s.body = &body;
  s.threads = threads;
  s.first_block = blockIdx;
  s.read_of_ended = false;
  s.shared.assign(static_cast<size_t>(blocks),
                  std::vector<uint4>((shared_bytes + 15) / 16, {~0U, ~0U, ~0U, ~0U}));
  if (s.fibers.empty()) s.fibers.resize(kMostThreads);  // once: contexts must not move
  for (int i = 0; i < all; ++i) prepare(s.fibers[static_cast<size_t>(i)]);
  const int block_warps = (threads + kWarp - 1) / kWarp, num_warps = blocks * block_warps;
  s.warps.resize(std::max(s.warps.size(), static_cast<size_t>(num_warps)));

  for (bool moved = true; moved;) {
    moved = false;
    for (int turn = 0; turn < num_warps; ++turn) {
      const int warp = in_order(turn, num_warps), block = warp / block_warps;
      const int begin = block * threads + warp % block_warps * kWarp;
      if (run_warp(warp, begin, std::min((block + 1) * threads, begin + kWarp))) moved = true;
    }
    for (int block = 0; block < blocks; ++block)
      if (release(block * threads, (block + 1) * threads, Waits::Block)) moved = true;
    if (release(0, all, Waits::Cluster)) moved = true;
  }
  bool all_done = true, all_waited = true;
  for (int i = 0; i < all; ++i) {
    Fiber& fiber = s.fibers[static_cast<size_t>(i)];
    all_waited = all_waited && fiber.waited_for_previous;
    if (fiber.waits == Waits::Done) continue;
    fiber.started = false;  // it stands within the body: the next block begins it anew
    all_done = false;
  }
  if (!all_done) throw std::logic_error("the threads of an emulated block wait for each other");
  if (s.read_of_ended)
    throw std::logic_error("a block read the shared memory of an emulated block that had ended");
  if (!all_waited)
    throw std::logic_error("a thread of an emulated kernel has not waited for the kernel before");
}

}  // namespace emulated

void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Words {
    uint32_t a[4], b[2];
  };
  Words mine;
  std::memcpy(mine.a, a, sizeof mine.a);
  std::memcpy(mine.b, b, sizeof mine.b);
  const auto& all = emulated::tell_warp(&mine, sizeof mine);
  // Numbers of this lane's two rows of a and two columns of b, by k.
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  float rows[2][16], columns[2][16];
  for (int word = 0; word < 8; ++word) {  // two elements along k
    const int k = 2 * word, high = k / 8;
    for (int half = 0; half < 2; ++half) {
      Words of_row, of_column;
      std::memcpy(&of_row, all[g * 4 + word % 4], sizeof of_row);
      std::memcpy(&of_column, all[(2 * t + half) * 4 + word % 4], sizeof of_column);
      const uint32_t a_word = of_row.a[half + 2 * high], b_word = of_column.b[high];
      rows[half][k] = float_of_bits(a_word << 16);
      rows[half][k + 1] = float_of_bits(a_word & 0xFFFF0000U);
      columns[half][k] = float_of_bits(b_word << 16);
      columns[half][k + 1] = float_of_bits(b_word & 0xFFFF0000U);
    }
  }
  for (int i = 0; i < 4; ++i) {
    double sum = static_cast<double>(d[i]);
    for (int k = 0; k < 16; ++k)
      sum += static_cast<double>(rows[i / 2][k]) * static_cast<double>(columns[i % 2][k]);
    d[i] = static_cast<float>(sum);
  }
}

}  // namespace medusa
