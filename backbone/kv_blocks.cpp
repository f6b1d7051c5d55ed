#include "backbone/kv_blocks.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "backbone/cpu/layout/kv_tiles.h"
#include "base/check.h"

namespace medusa {

KvBlocks::KvBlocks(const ModelConfig& config, int64_t block_rows, int32_t blocks_per_slab,
                   at::ScalarType dtype, at::Device device, KvLayout layout)
    : num_layers_(config.num_layers),
      num_kv_heads_(config.num_kv_heads),
      head_size_(config.head_size),
      block_rows_(block_rows),
      blocks_per_slab_(blocks_per_slab),
      options_(at::TensorOptions().dtype(dtype).device(device)),
      layout_(layout) {
  MEDUSA_ASSERT(block_rows > 0 && block_rows % kKvBlockRows == 0 && blocks_per_slab > 0, block_rows,
                blocks_per_slab);
  // The kernels take 32 rows to be one block.
  MEDUSA_ASSERT(layout == KvLayout::Rows ||
                (dtype == at::kBFloat16 && device.is_cpu() && block_rows == kKvBlockRows));
}

int64_t KvBlocks::block_bytes(const ModelConfig& config, int64_t block_rows, at::ScalarType dtype) {
  return 2 * config.num_layers * config.num_kv_heads * block_rows * config.head_size *
         static_cast<int64_t>(c10::elementSize(dtype));
}

void KvBlocks::allocate(int32_t block) {
  const auto index = static_cast<size_t>(block / blocks_per_slab_);
  if (slabs_.size() <= index) slabs_.resize(index + 1);
  if (slabs_[index].defined()) return;
  // A pass allocates, but its cache is written outside of inference mode, too.
  const c10::InferenceMode normal_tensor(false);
  slabs_[index] = at::zeros(
      {2, num_layers_, blocks_per_slab_, num_kv_heads_, block_rows_, head_size_}, options_);
}

int64_t KvBlocks::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& slab : slabs_)
    if (slab.defined()) sum += static_cast<int64_t>(slab.nbytes());
  return sum;
}

KvBlocks::Strides KvBlocks::strides() const {
  Strides out;
  out.head = block_rows_ * head_size_;
  out.block = num_kv_heads_ * out.head;
  out.layer = blocks_per_slab_ * out.block;
  out.values = num_layers_ * out.layer;
  return out;
}

void* KvBlocks::address(int32_t block) const {
  const at::Tensor& memory = slab(block);
  return static_cast<char*>(memory.data_ptr()) +
         index_in_slab(block) * strides().block * static_cast<int64_t>(memory.element_size());
}

const at::Tensor& KvBlocks::slab(int32_t block) const {
  const at::Tensor& slab = slabs_.at(static_cast<size_t>(block / blocks_per_slab_));
  MEDUSA_ASSERT(slab.defined(), block);
  return slab;
}

at::Tensor KvBlocks::rows(KvSide side, int64_t layer, int32_t block) const {
  return slab(block)
      .select(0, side == KvSide::Keys ? 0 : 1)
      .select(0, layer)
      .select(0, index_in_slab(block));
}

void KvBlocks::copy_row(int32_t from_block, int64_t from, int32_t to_block, int64_t to) {
  MEDUSA_ASSERT(from >= 0 && to >= 0 && from < block_rows_ && to < block_rows_, from, to);
  if (layout_ == KvLayout::Rows) {
    // [2, L, G, D]
    const auto row = [this](int32_t block, int64_t index) {
      return slab(block).select(2, index_in_slab(block)).select(3, index);
    };
    row(to_block, to).copy_(row(from_block, from));
    return;
  }
  const auto* source = static_cast<const uint16_t*>(address(from_block));
  auto* target = static_cast<uint16_t*>(address(to_block));
  const Strides stride = strides();
  for (int64_t layer = 0; layer < num_layers_; ++layer)
    for (int64_t head = 0; head < num_kv_heads_; ++head) {
      const int64_t keys = layer * stride.layer + head * stride.head, values = keys + stride.values;
      copy_tile_key(source + keys, from, target + keys, to, head_size_);
      copy_tile_value(source + values, from, target + values, to, head_size_);
    }
}

void KvBlocks::copy_block(const KvBlocks& source, int32_t from, int32_t to) {
  const int64_t count = std::min(block_rows_, source.block_rows_);
  const auto rows = [count](const KvBlocks& blocks, int32_t block) {
    return blocks.slab(block).select(2, blocks.index_in_slab(block)).narrow(3, 0, count);
  };
  rows(*this, to).copy_(rows(source, from));
}

}  // namespace medusa
