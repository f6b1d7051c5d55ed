#include "heads/cuda/device_heads.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "backbone/cuda/device_tensors.h"
#include "base/check.h"

namespace medusa {

bool DeviceHeads::supports(const HeadsConfig& config, const Weights& backbone) {
  const bool can_correct = config.layers_per_head == 1 && !is_own(config.output);
  return !has_prefix(config.input) && (config.correction_rank == 0 || can_correct) &&
         backbone.embedding.scalar_type() == at::kBFloat16 &&
         backbone.config.hidden_size % 32 == 0 &&
         (!is_low_rank(config.output) || config.output_rank % 32 == 0);
}

DeviceHeads::DeviceHeads(const MedusaHeads& heads, const Weights& backbone, const TreeShape& shape,
                         int64_t top_k, const HeadKernels& kernels, const GemmKernels& gemms,
                         PickDrafts pick)
    : config_(heads.config),
      hidden_size_(heads.hidden_size),
      top_k_(top_k),
      num_nodes_(static_cast<int64_t>(shape.depths.size())),
      row_size_(heads.output_rows()),
      kernels_(kernels),
      pick_(std::move(pick)) {
  MEDUSA_ASSERT(supports(heads.config, backbone));
  const at::Device device = backbone.embedding.device();
  sums_ = at::empty({1}, at::TensorOptions().dtype(at::kFloat).device(device));
  const auto gemm = [&](const at::Tensor& weight) {
    auto stored = device_weight(weight.to(at::kBFloat16), device);
    MEDUSA_ASSERT(stored.has_value());
    DeviceGemm made(gemms, std::move(*stored));
    if (made.scratch() > sums_.numel()) sums_ = at::empty({made.scratch()}, sums_.options());
    return made;
  };
  if (config_.input != HeadInput::Hidden) {
    embedding_ = backbone.embedding;
    gain_ = embedding_gain(backbone);
  }
  const int64_t depth = shape.depths.back();
  MEDUSA_ASSERT(depth <= config_.num_heads, depth, config_.num_heads);
  const bool together =
      depth > 0 && !reads_paths(config_.input) && config_.layers_per_head == 1 &&
      (!is_own(config_.output) || row_size_ % 4 == 0);  // logits of each head begin aligned
  std::vector<at::Tensor> firsts, biases;
  for (int64_t i = 0; i < depth * config_.layers_per_head; ++i) {
    const HeadBlock& block = heads.blocks[static_cast<size_t>(i)];
    firsts.push_back(block.weight);
    biases.push_back(block.bias.to(device, at::kFloat));
    blocks_.push_back({together ? DeviceGemm() : gemm(block.weight),
                       block.second.defined() ? gemm(block.second) : DeviceGemm(),
                       together ? at::Tensor() : biases.back()});
  }
  if (together) {
    all_first_ = gemm(at::cat(firsts));
    all_bias_ = at::stack(biases);
  }
  if (heads.outputs.empty()) outputs_.push_back(gemm(shared_output(heads, backbone)));
  for (const at::Tensor& output : heads.outputs) outputs_.push_back(gemm(output));
  for (const at::Tensor& down : heads.downs) downs_.push_back(gemm(down));
  if (!heads.kept_tokens.empty())
    token_of_row_ = at::tensor(heads.kept_tokens, at::kInt).to(device);
  if (heads.correction && depth > 1) {
    const DraftCorrection& correction = *heads.correction;
    for (int64_t head = 1; head < depth; ++head)
      corrections_.push_back(gemm(correction.factor_of(head)));
    before_table_ = correction.table.to(device, at::kBFloat16).contiguous();
    std::vector<int32_t> row_of_token = rows_of_tokens(heads);
    for (int32_t& row : row_of_token)
      if (row < 0) row = correction.unknown_row();
    row_of_token_ = at::tensor(row_of_token, at::kInt).to(device);
  }
  plan_depths(shape);
}

void DeviceHeads::plan_depths(const TreeShape& shape) {
  const auto on_device = [&](const std::vector<int32_t>& values) {
    return at::tensor(values, at::kInt).to(sums_.device());
  };
  std::vector<int32_t> place_of_node(shape.depths.size(), 0), ranks(shape.ranks);
  ranks[0] = 0;
  for (int32_t begin = 1, end = 1; begin < num_nodes_; begin = end) {
    const int32_t level = shape.depths[static_cast<size_t>(begin)];
    const int64_t num_read = tokens_read(config_.input, level - 1);
    Question question{0, begin, begin, {}, {}};
    std::vector<int32_t> paths, parents;
    int32_t last_parent = -1;
    for (; end < num_nodes_ && shape.depths[static_cast<size_t>(end)] == level; ++end) {
      const auto i = static_cast<size_t>(end);
      // Heads that depend on no path draft the same after each.
      const int32_t parent = depends_on_paths(config_) ? shape.parents[i] : 0;
      if (parent != last_parent) {
        const auto& path = shape.ancestors[static_cast<size_t>(parent)];
        paths.insert(paths.end(), path.begin(), path.begin() + num_read);
        parents.push_back(parent);
        ++question.num_paths;
      }
      last_parent = parent;
      place_of_node[i] = corrections_.empty() && at_once() ? level - 1 : question.num_paths - 1;
    }
    question.end = end;
    question.paths = on_device(paths).view({question.num_paths, num_read});
    if (!corrections_.empty()) question.parents = on_device(parents);
    rows_per_sequence_ = std::max<int64_t>(rows_per_sequence_, question.num_paths);
    most_read_ = std::max(most_read_, num_read);
    questions_.push_back(std::move(question));
  }
  if (at_once()) rows_per_sequence_ = std::max(rows_per_sequence_, depth());
  place_of_node_ = on_device(place_of_node);
  ranks_ = on_device(ranks);
}

void DeviceHeads::reserve(int64_t num_sequences) {
  const int64_t rows = num_sequences * rows_per_sequence_;
  if (rows <= rows_) return;
  rows_ = rows;
  const auto buffer = [&](int64_t size, at::ScalarType dtype) {
    return at::empty({rows, size}, ranks_.options().dtype(dtype));
  };
  const int64_t rank = downs_.empty() ? 0 : downs_.front().num_outputs();
  read_ = buffer((1 + most_read_) * hidden_size_, at::kBFloat16);
  rounded_ = buffer(std::max(hidden_size_, rank), at::kBFloat16);
  for (at::Tensor& states : states_) states = buffer(hidden_size_, at::kBFloat16);
  inner_ = buffer(std::max(hidden_size_, rank), at::kFloat);
  logits_ = buffer(row_size_, at::kFloat);
  drafts_ = buffer(top_k_, at::kInt);
  if (corrections_.empty()) return;
  before_ = buffer(before_table_.size(1), at::kBFloat16);
  corrected_ = buffer(row_size_, at::kFloat);
}

/// @returns  [B P, H] what the head's output multiplies.
const Bf16* DeviceHeads::run_layers(int64_t head, const Question& question, const Bf16* states,
                                    int64_t num_sequences, const int32_t* tokens,
                                    DeviceStream stream) {
  const int64_t rows = num_sequences * question.num_paths, num_read = question.paths.size(1);
  ReadPathsArgs read;
  read.states = states;
  read.embedding = elements<Bf16>(embedding_);
  read.gain = static_cast<float>(gain_);
  read.tokens = tokens;
  read.paths = elements<int32_t>(question.paths);
  read.num_nodes = static_cast<int32_t>(num_nodes_);
  read.num_paths = question.num_paths;
  read.num_read = static_cast<int32_t>(num_read);
  read.num_sequences = static_cast<int32_t>(num_sequences);
  read.hidden_size = hidden_size_;
  read.out = elements<Bf16>(read_);
  for (int64_t layer = 0; layer < config_.layers_per_head; ++layer) {
    const Block& block = blocks_[static_cast<size_t>(head * config_.layers_per_head + layer)];
    kernels_.read_paths(read, stream);
    block.first(elements<Bf16>(read_), rows, elements<float>(sums_), elements<float>(inner_),
                stream);
    AddStateArgs add;
    add.y = read.states;
    add.rows_per_y = read.per_path ? 1 : question.num_paths;
    add.num_y = rows / add.rows_per_y;
    add.inner = elements<float>(inner_);
    add.num_rows = rows;
    add.hidden_size = hidden_size_;
    if (num_read > 0) {
      kernels_.round_rows({.x = elements<float>(inner_),
                           .bias = elements<float>(block.bias),
                           .num_rows = rows,
                           .size = hidden_size_,
                           .out = elements<Bf16>(rounded_)},
                          stream);
      block.second(elements<Bf16>(rounded_), rows, elements<float>(sums_), elements<float>(inner_),
                   stream);
    } else {
      add.bias = elements<float>(block.bias);
    }
    add.out = elements<Bf16>(states_[layer % 2]);
    kernels_.add_state(add, stream);
    read.states = add.out;
    read.per_path = true;
  }
  return read.states;
}

void DeviceHeads::fill(const Bf16* states, const int32_t* roots, int64_t num_sequences,
                       int32_t* tokens, DeviceStream stream) {
  MEDUSA_ASSERT(num_sequences * rows_per_sequence_ <= rows_, num_sequences, rows_per_sequence_,
                rows_);
  FillNodesArgs fill;
  fill.roots = roots;
  fill.drafts = elements<int32_t>(drafts_);
  fill.place_of_node = elements<int32_t>(place_of_node_);
  fill.ranks = elements<int32_t>(ranks_);
  fill.end = 1;
  fill.num_nodes = static_cast<int32_t>(num_nodes_);
  fill.top_k = static_cast<int32_t>(top_k_);
  fill.num_sequences = static_cast<int32_t>(num_sequences);
  fill.tokens = tokens;
  kernels_.fill_nodes(fill, stream);
  if (at_once())
    fill_at_once(states, num_sequences, fill, stream);
  else
    fill_depths(states, num_sequences, fill, stream);
}

/// @returns  [D, B, H] what the heads' outputs multiply.
const Bf16* DeviceHeads::run_layers_at_once(const Bf16* states, int64_t num_sequences,
                                            const int32_t* tokens, DeviceStream stream) {
  const bool reads_root = tokens_read(config_.input, 0) > 0;
  const Bf16* read = states;
  if (reads_root) {
    ReadPathsArgs args;
    args.states = states;
    args.embedding = elements<Bf16>(embedding_);
    args.gain = static_cast<float>(gain_);
    args.tokens = tokens;
    args.paths = elements<int32_t>(questions_.front().paths);
    args.num_nodes = static_cast<int32_t>(num_nodes_);
    args.num_paths = args.num_read = 1;
    args.num_sequences = static_cast<int32_t>(num_sequences);
    args.hidden_size = hidden_size_;
    args.out = elements<Bf16>(read_);
    kernels_.read_paths(args, stream);
    read = args.out;
  }
  auto* inner = elements<float>(inner_);
  all_first_(read, num_sequences, elements<float>(sums_), inner, stream);  // [B, D, H]
  AddStateArgs add;
  add.y = states;
  add.num_y = num_sequences;
  add.inner = inner;
  add.hidden_size = hidden_size_;
  add.out = elements<Bf16>(states_[0]);
  if (reads_root) {
    auto* rounded = elements<Bf16>(rounded_);
    kernels_.round_rows({.x = inner,
                         .bias = elements<float>(all_bias_),
                         .num_rows = num_sequences,
                         .num_heads = depth(),
                         .size = hidden_size_,
                         .out = rounded},
                        stream);
    for (int64_t head = 0; head < depth(); ++head) {
      const int64_t first = head * num_sequences * hidden_size_;
      blocks_[static_cast<size_t>(head)].second(rounded + first, num_sequences,
                                                elements<float>(sums_), inner + first, stream);
    }
    add.num_rows = depth() * num_sequences;
  } else {
    add.bias = elements<float>(all_bias_);
    add.num_rows = num_sequences;
    add.num_heads = depth();
  }
  kernels_.add_state(add, stream);
  return add.out;
}

void DeviceHeads::fill_at_once(const Bf16* states, int64_t num_sequences, FillNodesArgs fill,
                               DeviceStream stream) {
  const Bf16* read = run_layers_at_once(states, num_sequences, fill.tokens, stream);
  const int64_t rows = depth() * num_sequences;
  auto *sums = elements<float>(sums_), *logits = elements<float>(logits_);
  const auto each_head = [&](const std::vector<DeviceGemm>& gemms, const Bf16* x, float* y) {
    for (int64_t head = 0; head < depth(); ++head) {
      const DeviceGemm& gemm = gemms[static_cast<size_t>(head)];
      gemm(x + head * num_sequences * gemm.num_inputs(), num_sequences, sums,
           y + head * num_sequences * gemm.num_outputs(), stream);
    }
  };
  if (!downs_.empty()) {
    auto* inner = elements<float>(inner_);
    each_head(downs_, read, inner);
    kernels_.round_rows({.x = inner,
                         .num_rows = rows,
                         .size = downs_.front().num_outputs(),
                         .out = elements<Bf16>(rounded_)},
                        stream);
    read = elements<Bf16>(rounded_);
  }
  if (is_own(config_.output))
    each_head(outputs_, read, logits);
  else
    outputs_.front()(read, rows, sums, logits, stream);
  if (!corrections_.empty()) return fill_corrected(num_sequences, fill, stream);
  pick(logits, rows, stream);
  fill.begin = 1;
  fill.end = fill.num_nodes;
  fill.sequence_stride = 1;
  fill.place_stride = static_cast<int32_t>(num_sequences);
  kernels_.fill_nodes(fill, stream);
}

void DeviceHeads::pick(const float* logits, int64_t num_rows, DeviceStream stream) {
  pick_(logits, num_rows, row_size_, static_cast<int32_t>(top_k_), elements<int32_t>(token_of_row_),
        elements<int32_t>(drafts_), stream);
}

/// @param logits  [B P, V_t] of the head that the question is for.
void DeviceHeads::pick_and_fill(const Question& question, const float* logits, FillNodesArgs fill,
                                DeviceStream stream) {
  pick(logits, int64_t{fill.num_sequences} * question.num_paths, stream);
  fill.begin = question.begin;
  fill.end = question.end;
  fill.sequence_stride = question.num_paths;
  fill.place_stride = 1;
  kernels_.fill_nodes(fill, stream);
}

/// Depth by depth from the logits that all heads have without their corrections: [D, B, V_t].
void DeviceHeads::fill_corrected(int64_t num_sequences, FillNodesArgs fill, DeviceStream stream) {
  const auto* logits = elements<float>(logits_);
  for (size_t head = 0; head < questions_.size(); ++head) {
    const Question& question = questions_[head];
    const int64_t rows = num_sequences * question.num_paths;
    const float* own = logits + static_cast<int64_t>(head) * num_sequences * row_size_;
    if (head > 0) {
      BeginCorrectionArgs begin;
      begin.tokens = fill.tokens;
      begin.parents = elements<int32_t>(question.parents);
      begin.row_of_token = elements<int32_t>(row_of_token_);
      begin.table = elements<Bf16>(before_table_);
      begin.logits = own;
      begin.num_nodes = static_cast<int32_t>(num_nodes_);
      begin.num_paths = question.num_paths;
      begin.num_sequences = static_cast<int32_t>(num_sequences);
      begin.rank = before_table_.size(1);
      begin.row_size = row_size_;
      begin.before = elements<Bf16>(before_);
      begin.corrected = elements<float>(corrected_);
      kernels_.begin_correction(begin, stream);
      corrections_[head - 1].add(begin.before, rows, elements<float>(sums_), begin.corrected,
                                 stream);
      own = begin.corrected;
    }
    pick_and_fill(question, own, fill, stream);
  }
}

void DeviceHeads::fill_depths(const Bf16* states, int64_t num_sequences, FillNodesArgs fill,
                              DeviceStream stream) {
  for (size_t head = 0; head < questions_.size(); ++head) {
    const Question& question = questions_[head];
    const int64_t rows = num_sequences * question.num_paths;
    const Bf16* read = run_layers(static_cast<int64_t>(head), question, states, num_sequences,
                                  fill.tokens, stream);
    if (!downs_.empty()) {
      downs_[head](read, rows, elements<float>(sums_), elements<float>(inner_), stream);
      kernels_.round_rows({.x = elements<float>(inner_),
                           .num_rows = rows,
                           .size = downs_[head].num_outputs(),
                           .out = elements<Bf16>(rounded_)},
                          stream);
      read = elements<Bf16>(rounded_);
    }
    outputs_[is_own(config_.output) ? head : 0](read, rows, elements<float>(sums_),
                                                elements<float>(logits_), stream);
    pick_and_fill(question, elements<float>(logits_), fill, stream);
  }
}

int64_t DeviceHeads::bytes() const {
  int64_t sum = all_first_.defined() ? all_first_.bytes() : 0;
  for (const Block& block : blocks_)
    for (const DeviceGemm* gemm : {&block.first, &block.second})
      if (gemm->defined()) sum += gemm->bytes();
  for (const auto* gemms : {&outputs_, &downs_, &corrections_})
    for (const DeviceGemm& gemm : *gemms) sum += gemm.bytes();
  return sum;
}

}  // namespace medusa
