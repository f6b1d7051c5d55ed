#include "heads/fused_heads.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/thread_team.h"
#include "base/check.h"
#include "heads/fused_math.h"
#include "heads/fused_weights.h"
#include "heads/head_buffers.h"

namespace medusa {
namespace {

constexpr int64_t kMaxPositions = 64;  // per pass: bounds the logits that are held at a time

const uint16_t* bits(const at::Tensor& bfloat16) {
  return static_cast<const uint16_t*>(bfloat16.const_data_ptr());
}

/// What one parallel region computes.
struct Pass {
  const uint16_t* hidden = nullptr;  // [M, H] bfloat16
  std::span<const TokenId> roots;    // [M]
  int64_t num_heads = 0;             // K'
  int64_t first_row = 0;             // of the guesses that it fills
  HeadGuesses* guesses = nullptr;

  int64_t num_positions() const { return static_cast<int64_t>(roots.size()); }  // M
};

}  // namespace

class FusedHeads::Impl {
 public:
  Impl(const MedusaHeads& heads, const Weights& backbone, int64_t top_k, const CpuKernels& kernels);

  void guess(const at::Tensor& hidden, std::span<const TokenId> roots, int64_t num_heads,
             HeadGuesses& guesses);
  void set_team(std::shared_ptr<ThreadTeam> team);
  const char* name() const { return kernels_.name; }

 private:
  void run_pass(int thread);
  void read_position(int64_t position);
  void run_layer(int64_t layer, int thread);
  void write_inner(const FusedBlock& block, int64_t head, Range columns);
  void write_states(const FusedBlock& block, int64_t layer, int64_t head, Range columns);
  void run_outputs(int thread);
  void pick(int thread);

  template <typename Body>
  void for_each_part(int64_t pairs_per_head, int thread, const Body& body) const;

  Range share(int64_t count, int thread) const {
    return share_of(count, thread, team_->num_threads());
  }
  int64_t row_size() const { return pass_.num_heads * weights_.hidden_size; }  // of all heads
  int64_t output_size() const { return weights_.outputs[0].num_outputs(); }    // V_t
  bool is_last(int64_t layer) const { return layer + 1 == weights_.config.layers_per_head; }
  /// Of a head's columns at one position in the buffers of [M, K', H].
  int64_t place(int64_t position, int64_t head, int64_t column) const {
    return position * row_size() + head * weights_.hidden_size + column;
  }
  /// Plain columns of one row to where products read them.
  void tile(const uint16_t* from, int64_t size, void* to) const {
    kernels_.tile(from, 1, size, to);
  }

  const CpuKernels& kernels_;
  const FusedWeights weights_;
  const int64_t top_k_;
  std::shared_ptr<ThreadTeam> team_;
  std::vector<GuessPicker> pickers_;  // one per thread
  HeadBuffers buffers_;
  Pass pass_;  // the one that runs
};

FusedHeads::Impl::Impl(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                       const CpuKernels& kernels)
    : kernels_(kernels), weights_(heads, backbone), top_k_(top_k) {
  set_team(shared_team());
}

void FusedHeads::Impl::set_team(std::shared_ptr<ThreadTeam> team) {
  team_ = std::move(team);
  pickers_.assign(static_cast<size_t>(team_->num_threads()),
                  GuessPicker(weights_.kept_tokens, top_k_));
}

void FusedHeads::Impl::guess(const at::Tensor& hidden, std::span<const TokenId> roots,
                             int64_t num_heads, HeadGuesses& guesses) {
  MEDUSA_ASSERT(hidden.scalar_type() == at::kBFloat16 && hidden.is_cpu());
  const auto num_positions = static_cast<int64_t>(roots.size());
  const at::Tensor rows = hidden.contiguous();  // itself, if it is
  guesses.reshape(num_positions, num_heads, top_k_);
  for (int64_t first = 0; first < num_positions; first += kMaxPositions) {
    const int64_t count = std::min(kMaxPositions, num_positions - first);
    pass_ = {bits(rows) + first * weights_.hidden_size,
             roots.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), num_heads,
             first * num_heads, &guesses};
    buffers_.shape(weights_, count, num_heads, kernels_.number_bytes);
    team_->run([this](int thread) { run_pass(thread); });
  }
}

/// Products split their outputs among the threads, and who has computed a column also does the
/// small work on it; the next product reads all columns and so waits for all threads.
void FusedHeads::Impl::run_pass(int thread) {
  {
    const KernelRegion region(kernels_);
    const Range positions = share(pass_.num_positions(), thread);
    for (int64_t m = positions.begin; m < positions.end; ++m) read_position(m);
    team_->barrier();
    for (int64_t layer = 0; layer < weights_.config.layers_per_head; ++layer)
      run_layer(layer, thread);
    run_outputs(thread);
  }
  team_->barrier();
  pick(thread);
}

void FusedHeads::Impl::read_position(int64_t position) {
  const int64_t size = weights_.hidden_size;
  const uint16_t* hidden = pass_.hidden + position * size;
  tile(hidden, size, buffers_.hidden.at(0, position, 0));
  for (int64_t head = 0; head < pass_.num_heads; ++head)
    std::copy_n(hidden, size, buffers_.states.data<uint16_t>() + place(position, head, 0));
  if (!weights_.reads_root()) return;
  const int64_t root = pass_.roots[static_cast<size_t>(position)];
  uint16_t* scaled = buffers_.rounded.data<uint16_t>() + place(position, 0, 0);
  scale_row(bits(weights_.embedding) + root * size, weights_.gain, size, scaled);
  tile(scaled, size, buffers_.roots.at(0, position, 0));
}

/// Calls body(head, pairs of that head's product) for this thread's share of all heads' pairs.
template <typename Body>
void FusedHeads::Impl::for_each_part(int64_t pairs_per_head, int thread, const Body& body) const {
  const Range all = share(pass_.num_heads * pairs_per_head, thread);
  for (int64_t pair = all.begin; pair < all.end;) {
    const int64_t head = pair / pairs_per_head, first = head * pairs_per_head;
    const int64_t end = std::min(all.end, first + pairs_per_head);
    body(head, Range{pair - first, end - first});
    pair = end;
  }
}

void FusedHeads::Impl::run_layer(int64_t layer, int thread) {
  const int64_t pairs_per_head = weights_.hidden_size / kPairOutputs;
  const int64_t num_positions = pass_.num_positions();
  const auto columns = [](Range pairs) {
    return Range{pairs.begin * kPairOutputs, pairs.end * kPairOutputs};
  };
  float* sums = buffers_.sums.data<float>();  // a head's begin at place(0, head, 0)

  for_each_part(pairs_per_head, thread, [&](int64_t head, Range pairs) {
    const FusedBlock& block = weights_.block(head, layer);
    const void* rows =
        layer == 0 ? buffers_.hidden.matrix(0) : buffers_.between[layer % 2].matrix(head);
    kernels_.product(block.state.view(), rows, num_positions, pairs, sums + place(0, head, 0),
                     row_size());
    if (!weights_.reads_root()) return write_states(block, layer, head, columns(pairs));
    kernels_.product_add(block.root.view(), buffers_.roots.matrix(0), num_positions, pairs,
                         sums + place(0, head, 0), row_size());
    write_inner(block, head, columns(pairs));
  });
  team_->barrier();
  if (!weights_.reads_root()) return;
  for_each_part(pairs_per_head, thread, [&](int64_t head, Range pairs) {
    const FusedBlock& block = weights_.block(head, layer);
    kernels_.product(block.second.view(), buffers_.inner.matrix(head), num_positions, pairs,
                     sums + place(0, head, 0), row_size());
    write_states(block, layer, head, columns(pairs));
  });
  team_->barrier();
}

/// What the second product reads, from the first one's sums.
void FusedHeads::Impl::write_inner(const FusedBlock& block, int64_t head, Range columns) {
  const int64_t size = columns.end - columns.begin;
  const auto* bias = static_cast<const float*>(block.bias.const_data_ptr()) + columns.begin;
  for (int64_t m = 0; m < pass_.num_positions(); ++m) {
    const int64_t at = place(m, head, columns.begin);
    uint16_t* inner = buffers_.rounded.data<uint16_t>() + at;
    activate_row(buffers_.sums.data<float>() + at, bias, size, inner);
    tile(inner, size, buffers_.inner.at(head, m, columns.begin));
  }
}

/// The residual sum, from the layer's last sums, and where the next product reads it.
void FusedHeads::Impl::write_states(const FusedBlock& block, int64_t layer, int64_t head,
                                    Range columns) {
  const int64_t size = columns.end - columns.begin;
  const auto* bias = static_cast<const float*>(block.bias.const_data_ptr()) + columns.begin;
  for (int64_t m = 0; m < pass_.num_positions(); ++m) {
    const int64_t at = place(m, head, columns.begin);
    const float* sums = buffers_.sums.data<float>() + at;
    uint16_t* state = buffers_.states.data<uint16_t>() + at;
    if (weights_.reads_root())
      add_to_row(sums, size, state);
    else
      add_activated_to_row(sums, bias, size, state);
    if (!is_last(layer))
      tile(state, size, buffers_.between[(layer + 1) % 2].at(head, m, columns.begin));
    else if (weights_.shares_output())
      tile(state, size, buffers_.last.at(0, m * pass_.num_heads + head, columns.begin));
    else
      tile(state, size, buffers_.last.at(head, m, columns.begin));
  }
}

void FusedHeads::Impl::run_outputs(int thread) {
  const int64_t num_positions = pass_.num_positions(), num_heads = pass_.num_heads;
  const int64_t num_pairs = weights_.outputs[0].view().num_pairs();
  float* logits = buffers_.logits.data<float>();  // [M, K', V_t]
  if (weights_.shares_output()) {
    kernels_.product(weights_.outputs[0].view(), buffers_.last.matrix(0), num_positions * num_heads,
                     share(num_pairs, thread), logits, output_size());
    return;
  }
  for_each_part(num_pairs, thread, [&](int64_t head, Range pairs) {
    kernels_.product(weights_.outputs[static_cast<size_t>(head)].view(), buffers_.last.matrix(head),
                     num_positions, pairs, logits + head * output_size(),
                     num_heads * output_size());
  });
}

void FusedHeads::Impl::pick(int thread) {
  const Range rows = share(pass_.num_positions() * pass_.num_heads, thread);
  GuessPicker& picker = pickers_[static_cast<size_t>(thread)];
  for (int64_t row = rows.begin; row < rows.end; ++row)
    picker.pick({buffers_.logits.data<const float>() + row * output_size(),
                 static_cast<size_t>(output_size())},
                pass_.first_row + row, *pass_.guesses);
}

bool FusedHeads::supports(const Weights& backbone) {
  return backbone.embedding.is_cpu() && backbone.embedding.scalar_type() == at::kBFloat16 &&
         backbone.config.hidden_size % kTileDepth == 0 && best_cpu_kernels() != nullptr;
}

FusedHeads::FusedHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                       const CpuKernels& kernels)
    : impl_(std::make_unique<Impl>(heads, backbone, top_k, kernels)) {
  MEDUSA_ASSERT(supports(backbone));
}
FusedHeads::FusedHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k)
    : FusedHeads(heads, backbone, top_k, *best_cpu_kernels()) {}
FusedHeads::~FusedHeads() = default;

void FusedHeads::guess(const at::Tensor& hidden, std::span<const TokenId> roots, int64_t num_heads,
                       HeadGuesses& guesses) {
  impl_->guess(hidden, roots, num_heads, guesses);
}
void FusedHeads::set_threads(int num_threads) {
  impl_->set_team(std::make_shared<ThreadTeam>(num_threads));
}
const char* FusedHeads::name() const { return impl_->name(); }

}  // namespace medusa
