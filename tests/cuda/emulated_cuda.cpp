#include "tests/cuda/emulated_cuda.h"

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "base/check.h"

namespace medusa {
namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr int kMostThreads = 1024;

enum class Waits { Nothing, Warp, Block, Done };

struct Copy {
  void* to;
  const void* from;
  int group;
};

struct Fiber {
  std::vector<Copy> copies;  // that have begun and not ended
  int group = 0;             // that is being filled
  Waits waits = Waits::Nothing;
  bool begun = false;
  ucontext_t start;
  jmp_buf place;  // faster to change than contexts, which ask the kernel for the signal mask
  std::unique_ptr<char[]> stack;
};

/// The block that runs, and what it keeps from block to block.
struct Scheduler {
  EmulatedOrder order = EmulatedOrder::Ascending;
  std::vector<Fiber> fibers;
  int current = 0;
  ucontext_t home_start;
  jmp_buf home;
  const std::function<void()>* body = nullptr;
  std::vector<uint4> shared;
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

/// Back to the scheduler until what the fiber waits for has come.
void yield(Waits waits) {
  Fiber& fiber = current_fiber();
  fiber.waits = waits;
  if (_setjmp(fiber.place) == 0) _longjmp(scheduler().home, 1);
}

void begin_fiber() {
  (*scheduler().body)();
  yield(Waits::Done);
}

/// Runs a fiber until it yields.
void resume(int thread) {
  Scheduler& s = scheduler();
  s.current = thread;
  threadIdx = dim3(static_cast<unsigned>(thread), 0, 0);
  Fiber& fiber = s.fibers[static_cast<size_t>(thread)];
  if (_setjmp(s.home) != 0) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  fiber.begun = true;
  swapcontext(&s.home_start, &fiber.start);
}

void prepare(Fiber& fiber) {
  if (!fiber.stack) fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  fiber.copies.clear();
  fiber.group = 0;
  fiber.waits = Waits::Nothing;
  fiber.begun = false;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, begin_fiber, 0);
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
bool run_warp(int warp, int threads) {
  Scheduler& s = scheduler();
  const int begin = warp * kWarp, end = std::min(threads, begin + kWarp);
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

void set_emulated_order(EmulatedOrder order) { scheduler().order = order; }

namespace emulated {

void* shared_bytes() { return scheduler().shared.data(); }
void wait_for_block() { yield(Waits::Block); }

void begin_copy(void* shared, const void* global) {
  Fiber& fiber = current_fiber();
  std::memset(shared, 0xFF, 16);
  fiber.copies.push_back({shared, global, fiber.group});
}
void end_copy_group() { ++current_fiber().group; }
void wait_for_copies(int pending) {
  Fiber& fiber = current_fiber();
  const auto is_over = [&](const Copy& copy) { return copy.group < fiber.group - pending; };
  for (const Copy& copy : fiber.copies)
    if (is_over(copy)) std::memcpy(copy.to, copy.from, 16);
  std::erase_if(fiber.copies, is_over);
}

const Deposits& tell_warp(const void* mine, size_t size) {
  Scheduler& s = scheduler();
  Scheduler::Warp& warp = s.warps[static_cast<size_t>(s.current / kWarp)];
  Deposits& deposits = warp.deposits[warp.round];
  std::memcpy(deposits[s.current % kWarp], mine, size);
  yield(Waits::Warp);
  return deposits;
}

void run_block(int threads, size_t shared_bytes, const std::function<void()>& body) {
  MEDUSA_ASSERT(threads > 0 && threads <= kMostThreads, threads);
  Scheduler& s = scheduler();
  s.body = &body;
  s.shared.assign((shared_bytes + 15) / 16, {~0U, ~0U, ~0U, ~0U});
  const auto n = static_cast<size_t>(threads);
  if (s.fibers.size() < n) s.fibers.resize(n);
  for (int i = 0; i < threads; ++i) prepare(s.fibers[static_cast<size_t>(i)]);
  const int num_warps = (threads + kWarp - 1) / kWarp;
  s.warps.assign(static_cast<size_t>(num_warps), {});

  for (bool moved = true; moved;) {
    moved = false;
    for (int turn = 0; turn < num_warps; ++turn)
      if (run_warp(in_order(turn, num_warps), threads)) moved = true;
    if (release(0, threads, Waits::Block)) moved = true;
  }
  for (int i = 0; i < threads; ++i)
    if (s.fibers[static_cast<size_t>(i)].waits != Waits::Done)
      throw std::logic_error("the threads of an emulated block wait for each other");
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
  const auto words = [&](int lane) {
    Words each;
    std::memcpy(&each, all[lane], sizeof each);
    return each;
  };
  const auto number = [](uint32_t word, int k) {
    return static_cast<double>(float_of_bits(k % 2 == 0 ? word << 16 : word & 0xFFFF0000U));
  };
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = g + (i >= 2 ? 8 : 0), column = 2 * t + i % 2;
    double sum = static_cast<double>(d[i]);
    for (int k = 0; k < 16; ++k) {
      const Words of_a = words(row % 8 * 4 + k % 8 / 2), of_b = words(column * 4 + k % 8 / 2);
      sum += number(of_a.a[(row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)], k) *
             number(of_b.b[k >= 8 ? 1 : 0], k);
    }
    d[i] = static_cast<float>(sum);
  }
}

}  // namespace medusa
