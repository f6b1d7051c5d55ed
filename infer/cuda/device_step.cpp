#include "infer/cuda/device_step.h"

#include <ATen/ATen.h>

#include "backbone/cuda/device_tensors.h"
#include "base/check.h"

namespace medusa {

DeviceStep::DeviceStep(CudaLlama& llama, DeviceHeads* heads, const TreeShape& shape,
                       const VerifyParameters& verify, const StepKernels& kernels,
                       const KvCache& cache, int32_t num_places)
    : llama_(llama), heads_(heads), verify_(verify), kernels_(kernels), cache_(device_view(cache)) {
  const at::Device device = cache.keys().device();
  std::vector<int32_t> parents{-1}, depths{0};
  std::vector<int64_t> ancestors{1};
  if (heads_ != nullptr) {
    parents = shape.parents;
    depths = shape.depths;
    ancestors.clear();
    for (const auto& path : shape.ancestors) {
      uint64_t bits = 0;
      for (const int32_t node : path) bits |= uint64_t{1} << node;
      ancestors.push_back(static_cast<int64_t>(bits));
    }
    num_nodes_ = static_cast<int32_t>(parents.size());
    max_depth_ = depths.back();
    heads_->reserve(num_places);
  }
  MEDUSA_ASSERT(num_nodes_ <= 64, num_nodes_);
  parents_ = at::tensor(parents, at::kInt).to(device);
  depths_ = at::tensor(depths, at::kInt).to(device);
  ancestors_ = at::tensor(ancestors, at::kLong).to(device);

  const auto buffer = [&](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::zeros(sizes, at::TensorOptions().dtype(dtype).device(device));
  };
  const int64_t b = num_places, n = num_nodes_, rows = b * n;
  for (at::Tensor* each : {&slots_, &lengths_, &roots_, &counts_}) *each = buffer({b}, at::kInt);
  seeds_ = buffer({b}, at::kLong);
  states_ = buffer({b, llama_.config().hidden_size}, at::kBFloat16);
  tokens_ = heads_ != nullptr ? buffer({b, n}, at::kInt) : roots_.view({b, 1});
  paths_ = buffer({b, max_depth_ + 1}, at::kInt);
  turn_ = buffer({1}, at::kInt);
  for (at::Tensor* each : {&row_slots_, &starts_, &positions_, &cache_rows_, &verified_})
    *each = buffer({rows}, at::kInt);
  row_paths_ = buffer({rows}, at::kLong);
  for (at::Tensor* each : {&maxima_, &log_sums_, &thresholds_}) *each = buffer({rows}, at::kFloat);

  std::vector<int32_t> places;
  for (int32_t place = 0; place < num_places; ++place)
    places.insert(places.end(), static_cast<size_t>(n), place);
  tiles_ = tiles_of(places, llama_.tile_rows()).to(device);
  tiles_per_sequence_ = static_cast<int32_t>(tiles_.size(0)) / num_places;
  llama_.reserve(rows, cache.capacity());
  llama_.reserve_logits(rows);
}

DeviceTree DeviceStep::tree() const {
  DeviceTree tree;
  tree.parents = elements<int32_t>(parents_);
  tree.depths = elements<int32_t>(depths_);
  tree.paths = elements<uint64_t>(ancestors_);
  tree.num_nodes = num_nodes_;
  tree.max_depth = max_depth_;
  return tree;
}

DevicePass DeviceStep::pass(int32_t num_sequences, int64_t max_context) const {
  DevicePass pass;
  pass.rows = {elements<int32_t>(tokens_),     elements<int32_t>(row_slots_),
               elements<int32_t>(starts_),     elements<int32_t>(positions_),
               elements<int32_t>(cache_rows_), elements<uint64_t>(row_paths_),
               num_sequences * num_nodes_};
  pass.tiles = static_cast<const DeviceTile*>(tiles_.data_ptr());
  pass.num_tiles = num_sequences * tiles_per_sequence_;
  pass.max_context = max_context;
  return pass;
}

void DeviceStep::enter(int32_t place, int32_t slot, int64_t length, TokenId root,
                       const at::Tensor& state, uint64_t seed) {
  slots_[place].fill_(slot);
  lengths_[place].fill_(length);
  roots_[place].fill_(root);
  seeds_[place].fill_(static_cast<int64_t>(seed));
  if (state.defined())
    states_[place].copy_(state);
  else
    states_[place].zero_();
}

void DeviceStep::move(int32_t from, int32_t to) {
  for (const at::Tensor* each : {&slots_, &lengths_, &roots_, &seeds_, &states_})
    each->select(0, to).copy_(each->select(0, from));
}

void DeviceStep::run(int32_t num_sequences, int64_t max_context, DeviceStream stream) {
  const DeviceTree shape = tree();
  const int64_t num_rows = int64_t{num_sequences} * num_nodes_;
  const int64_t vocab_size = llama_.config().vocab_size, hidden_size = llama_.config().hidden_size;

  if (heads_ != nullptr)
    heads_->fill(elements<Bf16>(states_), elements<int32_t>(roots_), num_sequences,
                 elements<int32_t>(tokens_), stream);

  PlaceRowsArgs place;
  place.tree = shape;
  place.slots = elements<int32_t>(slots_);
  place.lengths = elements<int32_t>(lengths_);
  place.num_sequences = num_sequences;
  place.row_slots = elements<int32_t>(row_slots_);
  place.starts = elements<int32_t>(starts_);
  place.positions = elements<int32_t>(positions_);
  place.cache_rows = elements<int32_t>(cache_rows_);
  place.paths = elements<uint64_t>(row_paths_);
  kernels_.place_rows(place, stream);

  const Bf16* hidden = llama_.run(pass(num_sequences, max_context), cache_, stream);
  const float* logits = llama_.run_logits(hidden, num_rows, stream);

  VerifyRowsArgs verify;
  verify.rule = verify_.rule;
  verify.logits = logits;
  verify.num_rows = num_rows;
  verify.vocab_size = vocab_size;
  verify.temperature = verify_.temperature;
  verify.filter = verify_.filter;
  verify.epsilon = verify_.epsilon;
  verify.delta = verify_.delta;
  verify.seeds = elements<uint64_t>(seeds_);
  verify.positions = elements<int32_t>(positions_);
  verify.rows_per_sequence = num_nodes_;
  verify.tokens = elements<int32_t>(verified_);
  verify.maxima = elements<float>(maxima_);
  verify.log_sums = elements<float>(log_sums_);
  verify.thresholds = elements<float>(thresholds_);
  kernels_.verify_rows(verify, stream);

  WalkArgs walk;
  walk.rule = verify_.rule;
  walk.tree = shape;
  walk.tokens = elements<int32_t>(tokens_);
  walk.verified = elements<int32_t>(verified_);
  walk.logits = logits;
  walk.vocab_size = vocab_size;
  walk.temperature = verify_.temperature;
  walk.maxima = elements<float>(maxima_);
  walk.log_sums = elements<float>(log_sums_);
  walk.thresholds = elements<float>(thresholds_);
  walk.num_sequences = num_sequences;
  walk.counts = elements<int32_t>(counts_);
  walk.paths = elements<int32_t>(paths_);
  walk.next = elements<int32_t>(roots_);
  for (int i = 0; i < 2; ++i) walk.emitted[i] = emitted_[i];
  walk.turn = elements<int32_t>(turn_);
  kernels_.walk(walk, stream);

  MoveRowsArgs move;
  move.cache = cache_;
  move.slots = elements<int32_t>(slots_);
  move.starts = elements<int32_t>(lengths_);
  move.counts = elements<int32_t>(counts_);
  move.paths = elements<int32_t>(paths_);
  move.num_sequences = num_sequences;
  move.max_path = max_depth_ + 1;
  llama_.kernels().layers->move_rows(move, stream);

  AdvanceArgs advance;
  advance.num_sequences = num_sequences;
  advance.num_nodes = num_nodes_;
  advance.max_path = max_depth_ + 1;
  advance.counts = elements<int32_t>(counts_);
  advance.paths = elements<int32_t>(paths_);
  advance.lengths = elements<int32_t>(lengths_);
  advance.hidden = hidden;
  advance.hidden_size = hidden_size;
  advance.states = elements<Bf16>(states_);
  advance.turn = elements<int32_t>(turn_);
  kernels_.advance(advance, stream);
}

}  // namespace medusa
