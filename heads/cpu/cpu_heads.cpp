#include "heads/cpu/cpu_heads.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/threads/thread_pool.h"
#include "base/check.h"
#include "heads/cpu/head_buffers.h"
#include "heads/cpu/head_math.h"
#include "heads/cpu/packed_heads.h"

namespace medusa {
namespace {

constexpr int64_t kMaxPositions = 64;  // per pass: bounds the logits that are held at a time

const uint16_t* bits(const at::Tensor& bfloat16) {
  return static_cast<const uint16_t*>(bfloat16.const_data_ptr());
}

/// What one parallel region computes.
struct Pass {
  HeadQuery query;                   // of these positions
  const uint16_t* hidden = nullptr;  // [P, H] bfloat16
  int64_t num_states = 0;            // P: M, or 1 if all positions share state and root
  int64_t num_tokens = 0;            // E, read by the last head
  int64_t first_row = 0;             // of the drafts that it fills
  HeadDrafts* drafts = nullptr;
  bool corrects = false;   // heads that are to be corrected are
  int64_t num_picked = 0;  // rows of logits, from the first, whose drafts are kept
};

/// The logits of one head after some tokens of the head before.
struct Correction {
  int64_t head = 0;
  std::span<const TokenId> tokens;  // [M]
  int64_t first_row = 0;            // of the drafts that it fills
  HeadDrafts* drafts = nullptr;
};

class CpuHeads : public HeadsBackend {
 public:
  CpuHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
           const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool);

  void draft(const HeadQuery& query, HeadDrafts& drafts) override;
  void begin(const HeadQuery& query, HeadDrafts& drafts) override;
  void correct(int64_t head, std::span<const TokenId> tokens, HeadDrafts& drafts) override;
  const char* name() const override { return kernels_.name; }

 private:
  void run_pass(int thread);
  void read_position(int64_t position);
  void run_layer(int64_t layer, int thread);
  void run_first_gemm(int64_t layer, int64_t head, Range pairs);
  void write_inner(const PackedHeadBlock& block, int64_t head, Range columns);
  void write_states(const PackedHeadBlock& block, int64_t layer, int64_t head, Range columns);
  void run_downs(int thread);
  void run_outputs(int thread);
  void add_correction(int64_t head, Range pairs);
  void run_correction(const Correction& correction, int thread);
  void read_before(int64_t head, int64_t position, TokenId token);
  void pick(int thread);

  template <typename Body>
  void for_each_part(int64_t pairs_per_head, int thread, const Body& body) const;

  Range share(int64_t count, int thread) const {
    return share_of(count, thread, pool_->num_running());
  }
  int64_t num_positions() const { return pass_.query.num_positions; }        // M
  int64_t num_heads() const { return pass_.query.num_heads; }                // K'
  int64_t row_size() const { return num_heads() * weights_.hidden_size; }    // of all heads
  int64_t output_size() const { return weights_.outputs[0].num_outputs(); }  // V_t
  bool is_last(int64_t layer) const { return layer + 1 == weights_.config.layers_per_head; }
  /// Heads are counted from the first that is run.
  const PackedHeadBlock& block(int64_t head, int64_t layer) const {
    return weights_.block(pass_.query.first_head + head, layer);
  }
  /// Of a head's columns at one position in the buffers of [M, K', H].
  int64_t place(int64_t position, int64_t head, int64_t column) const {
    return position * row_size() + head * weights_.hidden_size + column;
  }
  float* sums_of(int64_t head) { return buffers_.sums.data<float>() + place(0, head, 0); }
  static Range columns_of(Range pairs) {
    return {pairs.begin * kPairOutputs, pairs.end * kPairOutputs};
  }

  const CpuKernels& kernels_;
  const PackedHeads weights_;
  const int64_t top_k_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<DraftPicker> pickers_;  // one per thread
  HeadBuffers buffers_;
  Pass pass_;              // the one that runs
  int64_t num_begun_ = 0;  // heads whose logits begin() left
};

CpuHeads::CpuHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                   const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool)
    : kernels_(kernels),
      weights_(heads, backbone),
      top_k_(top_k),
      pool_(std::move(pool)),
      pickers_(static_cast<size_t>(pool_->num_threads()),
               DraftPicker(weights_.kept_tokens, top_k_)) {}

void CpuHeads::draft(const HeadQuery& query, HeadDrafts& drafts) {
  MEDUSA_ASSERT(query.hidden.scalar_type() == at::kBFloat16 && query.hidden.is_cpu());
  const at::Tensor states = query.hidden.contiguous();  // itself, if it is
  const bool shared = states.size(0) == 1;
  const int64_t num_tokens = tokens_read(weights_.config.input, query.last_head());
  drafts.reshape(query.num_positions, query.num_heads, top_k_);
  num_begun_ = 0;  // their logits are overwritten
  for (int64_t first = 0; first < query.num_positions; first += kMaxPositions) {
    const int64_t count = std::min(kMaxPositions, query.num_positions - first);
    pass_ = {query,
             bits(states) + (shared ? 0 : first * weights_.hidden_size),
             shared ? 1 : count,
             num_tokens,
             first * query.num_heads,
             &drafts,
             weights_.corrected(),
             count * query.num_heads};
    pass_.query.num_positions = count;
    pass_.query.tokens = query.tokens.subspan(static_cast<size_t>(first * query.stride));
    buffers_.shape(kernels_, weights_, {count, query.num_heads, num_tokens});
    pool_->run([this](int thread) { run_pass(thread); });
  }
  pass_ = {};  // holds nothing of the caller's
}

void CpuHeads::begin(const HeadQuery& query, HeadDrafts& drafts) {
  MEDUSA_ASSERT(query.hidden.scalar_type() == at::kBFloat16 && query.hidden.is_cpu());
  const at::Tensor states = query.hidden.contiguous();
  const int64_t num_tokens = tokens_read(weights_.config.input, 0);
  drafts.reshape(1, 1, top_k_);
  pass_ = {query, bits(states), 1, num_tokens, 0, &drafts, false, 1};
  buffers_.shape(kernels_, weights_, {1, query.num_heads, num_tokens});
  pool_->run([this](int thread) { run_pass(thread); });
  pass_ = {};
  num_begun_ = query.num_heads;
}

void CpuHeads::correct(int64_t head, std::span<const TokenId> tokens, HeadDrafts& drafts) {
  MEDUSA_ASSERT(head > 0 && head < num_begun_, head, num_begun_);
  const auto num_tokens = std::ssize(tokens);
  drafts.reshape(num_tokens, 1, top_k_);
  for (int64_t first = 0; first < num_tokens; first += kMaxPositions) {
    const int64_t count = std::min(kMaxPositions, num_tokens - first);
    const Correction correction{
        head, tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), first,
        &drafts};
    buffers_.shape_correction(kernels_, weights_, count);
    pool_->run([&](int thread) { run_correction(correction, thread); });
  }
}

/// GEMMs split their outputs among the threads, and who has computed a column also does the
/// small work on it; the next GEMM reads all columns and so waits for all threads.
void CpuHeads::run_pass(int thread) {
  {
    const KernelRegion region(kernels_);
    const Range positions = share(num_positions(), thread);
    for (int64_t m = positions.begin; m < positions.end; ++m) read_position(m);
    pool_->barrier();
    for (int64_t layer = 0; layer < weights_.config.layers_per_head; ++layer)
      run_layer(layer, thread);
    if (weights_.low_rank()) run_downs(thread);
    run_outputs(thread);
  }
  pool_->barrier();
  pick(thread);
}

void CpuHeads::read_position(int64_t position) {
  const int64_t size = weights_.hidden_size;
  const uint16_t* hidden = pass_.hidden + std::min(position, pass_.num_states - 1) * size;
  buffers_.hidden.write(0, position, 0, hidden, size);
  for (int64_t head = 0; head < num_heads(); ++head)
    std::copy_n(hidden, size, buffers_.states.data<uint16_t>() + place(position, head, 0));
  for (int64_t i = 0; i < pass_.num_tokens; ++i) {
    const int64_t token = pass_.query.token(position, i);
    uint16_t* scaled = buffers_.rounded.data<uint16_t>() + place(position, 0, 0);
    scale_row(bits(weights_.embedding) + token * size, weights_.gain, size, scaled);
    buffers_.tokens.write(i, position, 0, scaled, size);
  }
  for (int64_t head = 0; pass_.corrects && head < num_heads(); ++head)
    if (const int64_t read = pass_.query.first_head + head; read > 0)
      read_before(head, position, pass_.query.token(position, read));
}

/// What a head's correction multiplies after a token.
void CpuHeads::read_before(int64_t head, int64_t position, TokenId token) {
  const int64_t row = weights_.row_of_token[static_cast<size_t>(token)];
  const int64_t rank = weights_.correction_rank();
  buffers_.before.write(head, position, 0, bits(weights_.correction_table) + row * rank, rank);
}

/// Calls body(head, pairs of that head's GEMM) for this thread's share of all heads' pairs.
template <typename Body>
void CpuHeads::for_each_part(int64_t pairs_per_head, int thread, const Body& body) const {
  const Range all = share(num_heads() * pairs_per_head, thread);
  for (int64_t pair = all.begin; pair < all.end;) {
    const int64_t head = pair / pairs_per_head, first = head * pairs_per_head;
    const int64_t end = std::min(all.end, first + pairs_per_head);
    body(head, Range{pair - first, end - first});
    pair = end;
  }
}

void CpuHeads::run_layer(int64_t layer, int thread) {
  const int64_t pairs_per_head = weights_.hidden_size / kPairOutputs;
  for_each_part(pairs_per_head, thread, [&](int64_t head, Range pairs) {
    run_first_gemm(layer, head, pairs);
    if (weights_.reads_tokens())
      write_inner(block(head, layer), head, columns_of(pairs));
    else
      write_states(block(head, layer), layer, head, columns_of(pairs));
  });
  pool_->barrier();
  if (!weights_.reads_tokens()) return;
  for_each_part(pairs_per_head, thread, [&](int64_t head, Range pairs) {
    kernels_.gemm(block(head, layer).second.view(), buffers_.inner.matrix(head), num_positions(),
                  pairs, sums_of(head), row_size());
    write_states(block(head, layer), layer, head, columns_of(pairs));
  });
  pool_->barrier();
}

/// W1, or W, times what it reads. The parts are added in one order whether or not positions share
/// the first of them: before the first layer those of one root differ only in the tokens behind it.
void CpuHeads::run_first_gemm(int64_t layer, int64_t head, Range pairs) {
  const PackedHeadBlock& weights = block(head, layer);
  const int64_t num_different = layer == 0 ? pass_.num_states : num_positions();
  const void* rows =
      layer == 0 ? buffers_.hidden.matrix(0) : buffers_.between[layer % 2].matrix(head);
  float* sums = sums_of(head);
  kernels_.gemm(weights.state.view(), rows, num_different, pairs, sums, row_size());
  const auto add_token = [&](size_t i, int64_t num_rows) {
    kernels_.gemm_add(weights.tokens[i].view(), buffers_.tokens.matrix(static_cast<int64_t>(i)),
                      num_rows, pairs, sums, row_size());
  };
  if (!weights.tokens.empty()) add_token(0, num_different);
  const Range columns = columns_of(pairs);
  for (int64_t m = num_different; m < num_positions(); ++m)
    std::copy(sums + columns.begin, sums + columns.end, sums + m * row_size() + columns.begin);
  for (size_t i = 1; i < weights.tokens.size(); ++i) add_token(i, num_positions());
}

/// What the second GEMM reads, from the first one's sums.
void CpuHeads::write_inner(const PackedHeadBlock& block, int64_t head, Range columns) {
  const int64_t size = columns.end - columns.begin;
  const auto* bias = static_cast<const float*>(block.bias.const_data_ptr()) + columns.begin;
  for (int64_t m = 0; m < num_positions(); ++m) {
    const int64_t at = place(m, head, columns.begin);
    uint16_t* inner = buffers_.rounded.data<uint16_t>() + at;
    activate_row(buffers_.sums.data<float>() + at, bias, size, inner);
    buffers_.inner.write(head, m, columns.begin, inner, size);
  }
}

/// The residual sum, from the layer's last sums, and where the next GEMM reads it.
void CpuHeads::write_states(const PackedHeadBlock& block, int64_t layer, int64_t head,
                            Range columns) {
  const int64_t size = columns.end - columns.begin;
  const auto* bias = static_cast<const float*>(block.bias.const_data_ptr()) + columns.begin;
  for (int64_t m = 0; m < num_positions(); ++m) {
    const int64_t at = place(m, head, columns.begin);
    const float* sums = buffers_.sums.data<float>() + at;
    uint16_t* state = buffers_.states.data<uint16_t>() + at;
    if (weights_.reads_tokens())
      add_to_row(sums, size, state);
    else
      add_activated_to_row(sums, bias, size, state);
    if (!is_last(layer))
      buffers_.between[(layer + 1) % 2].write(head, m, columns.begin, state, size);
    else if (weights_.shares_output())
      buffers_.last.write(0, m * num_heads() + head, columns.begin, state, size);
    else
      buffers_.last.write(head, m, columns.begin, state, size);
  }
}

/// The first factors of low-rank outputs.
void CpuHeads::run_downs(int thread) {
  const int64_t rank = weights_.downs[0].num_outputs();
  for_each_part(rank / kPairOutputs, thread, [&](int64_t head, Range pairs) {
    const auto down = static_cast<size_t>(pass_.query.first_head + head);
    kernels_.gemm(weights_.downs[down].view(), buffers_.last.matrix(head), num_positions(), pairs,
                  sums_of(head), row_size());
    const Range columns = columns_of(pairs);
    const int64_t size = columns.end - columns.begin;
    for (int64_t m = 0; m < num_positions(); ++m) {
      const int64_t at = place(m, head, columns.begin);
      uint16_t* rounded = buffers_.rounded.data<uint16_t>() + at;
      round_row(buffers_.sums.data<float>() + at, size, rounded);
      buffers_.narrow.write(head, m, columns.begin, rounded, size);
    }
  });
  pool_->barrier();
}

void CpuHeads::run_outputs(int thread) {
  const int64_t num_pairs = weights_.outputs[0].view().num_pairs();
  float* logits = buffers_.logits.data<float>();  // [M, K', V_t]
  if (weights_.shares_output()) {
    const Range pairs = share(num_pairs, thread);
    kernels_.gemm(weights_.outputs[0].view(), buffers_.last.matrix(0),
                  num_positions() * num_heads(), pairs, logits, output_size());
    for (int64_t head = 0; head < num_heads(); ++head) add_correction(head, pairs);
    return;
  }
  for_each_part(num_pairs, thread, [&](int64_t head, Range pairs) {
    const auto output = static_cast<size_t>(pass_.query.first_head + head);
    const GemmRows& rows = weights_.low_rank() ? buffers_.narrow : buffers_.last;
    kernels_.gemm(weights_.outputs[output].view(), rows.matrix(head), num_positions(), pairs,
                  logits + head * output_size(), num_heads() * output_size());
    add_correction(head, pairs);
  });
}

/// On the columns that this thread has just computed.
void CpuHeads::add_correction(int64_t head, Range pairs) {
  const int64_t corrected = pass_.query.first_head + head;
  if (!pass_.corrects || corrected == 0) return;
  kernels_.gemm_add(weights_.corrections[static_cast<size_t>(corrected - 1)].view(),
                    buffers_.before.matrix(head), num_positions(), pairs,
                    buffers_.logits.data<float>() + head * output_size(),
                    num_heads() * output_size());
}

/// As run_pass() ends, from the logits that begin() left.
void CpuHeads::run_correction(const Correction& correction, int thread) {
  const auto num_tokens = std::ssize(correction.tokens);
  const int64_t size = output_size();
  float* after = buffers_.after.data<float>();  // [M, V_t]
  {
    const KernelRegion region(kernels_);
    const Range rows = share(num_tokens, thread);
    for (int64_t m = rows.begin; m < rows.end; ++m)
      read_before(0, m, correction.tokens[static_cast<size_t>(m)]);
    const TileWeight& factor = weights_.corrections[static_cast<size_t>(correction.head - 1)];
    const Range pairs = share(factor.view().num_pairs(), thread);
    const Range columns{columns_of(pairs).begin, std::min(columns_of(pairs).end, size)};
    const float* begun = buffers_.logits.data<const float>() + correction.head * size;
    for (int64_t m = 0; m < num_tokens; ++m)
      std::copy_n(begun + columns.begin, columns.end - columns.begin,
                  after + m * size + columns.begin);
    pool_->barrier();
    kernels_.gemm_add(factor.view(), buffers_.before.matrix(0), num_tokens, pairs, after, size);
  }
  pool_->barrier();
  const Range rows = share(num_tokens, thread);
  DraftPicker& picker = pickers_[static_cast<size_t>(thread)];
  for (int64_t m = rows.begin; m < rows.end; ++m)
    picker.pick({after + m * size, static_cast<size_t>(size)}, correction.first_row + m,
                *correction.drafts);
}

void CpuHeads::pick(int thread) {
  const Range rows = share(pass_.num_picked, thread);
  DraftPicker& picker = pickers_[static_cast<size_t>(thread)];
  for (int64_t row = rows.begin; row < rows.end; ++row)
    picker.pick({buffers_.logits.data<const float>() + row * output_size(),
                 static_cast<size_t>(output_size())},
                pass_.first_row + row, *pass_.drafts);
}

}  // namespace

bool cpu_heads_support(const Weights& backbone, CpuIsa isa) {
  return backbone.embedding.is_cpu() && backbone.embedding.scalar_type() == at::kBFloat16 &&
         backbone.config.hidden_size % kTileDepth == 0 &&
         kernels_for(isa, backbone.kind != QuantKind::None) != nullptr;
}

std::unique_ptr<HeadsBackend> make_cpu_heads(const MedusaHeads& heads, const Weights& backbone,
                                             int64_t top_k, const CpuKernels& kernels,
                                             std::shared_ptr<ThreadPool> pool) {
  MEDUSA_ASSERT(cpu_heads_support(backbone, CpuIsa::Auto));
  MEDUSA_ASSERT((kernels.quantize != nullptr) == (backbone.kind != QuantKind::None), kernels.name);
  return std::make_unique<CpuHeads>(heads, backbone, top_k, kernels, std::move(pool));
}

std::unique_ptr<HeadsBackend> make_cpu_heads(const MedusaHeads& heads, const Weights& backbone,
                                             int64_t top_k, const ExecutionContext& execution) {
  return make_cpu_heads(heads, backbone, top_k,
                        *kernels_for(execution.isa(), backbone.kind != QuantKind::None),
                        execution.pool());
}

}  // namespace medusa
