#include "tests/device/host_call.h"

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "tests/device/fake_device.h"
#include "tests/device/fake_generator.h"
#include "tests/device/guarded_memory.h"

namespace medusa::fixtures {
namespace {

bool indexes_by_tensors(const c10::FunctionSchema& schema) {
  constexpr std::array<std::string_view, 6> kNames{
      "aten::index",      "aten::index_put",        "aten::_index_put_impl",
      "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"};
  return std::find(kNames.begin(), kNames.end(), schema.name()) != kNames.end();
}

void check_tensor(const c10::FunctionSchema& schema, const at::Tensor& tensor, bool is_index) {
  if (!tensor.defined() || tensor.device() == fake_device()) return;
  if (tensor.is_cpu() && (tensor.dim() == 0 || is_index)) return;
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two, ",
              fake_device(), " and ", tensor.device(), "! (in ", schema.name(), ")");
}

at::Tensor view_of(const at::Storage& storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(at::Storage(storage),
                                                            c10::DispatchKeySet(key), like.dtype());
  auto* impl = out.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  impl->set_storage_offset(like.storage_offset());
  return out;
}

/// The device's tensors as the CPU sees them while a call lasts: each once, so that two arguments
/// that share memory, or are one tensor, do and are so there, too.
class HostTensors {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device() != fake_device()) return tensor;
    auto& found = by_device_[tensor.unsafeGetTensorImpl()];
    if (!found.host.defined()) {
      found.device = tensor;
      found.host = view_of(storage_of(tensor.storage()), tensor, c10::DispatchKey::CPU);
      found.block = found.host.storage().data();
    }
    return found.host;
  }

  /// A result of the call, on the device: the argument that it is, or a copy.
  at::Tensor on_device(const c10::FunctionSchema& schema, const at::Tensor& result) {
    if (!result.defined()) return result;
    for (const auto& [impl, pair] : by_device_)
      if (pair.host.is_same(result)) return pair.device;
    for (const auto& [impl, pair] : by_device_)
      TORCH_CHECK(pair.block == nullptr || result.storage().data() != pair.block,
                  "the fake device needs a kernel of its own for the view ", schema.name());
    at::Tensor out =
        at::empty_strided(result.sizes(), result.strides(), result.options().device(fake_device()));
    copy_over_host(result, out);
    return out;
  }

  /// Follows an `out` argument that the kernel made larger, in memory of the CPU's.
  void follow_resized() {
    for (const auto& [impl, pair] : by_device_) {
      const bool moved = pair.host.storage().data() != pair.block;
      if (!moved && pair.host.sizes() == pair.device.sizes() &&
          pair.host.strides() == pair.device.strides())
        continue;
      if (!moved) {
        pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.host.sizes(),
                                                                 pair.host.strides());
        continue;
      }
      const at::Tensor grown =
          at::empty_strided(pair.host.sizes(), pair.host.strides(), pair.device.options());
      copy_over_host(pair.host, grown);
      pair.device.unsafeGetTensorImpl()->set_storage_keep_dtype(grown.storage());
      pair.device.unsafeGetTensorImpl()->set_storage_offset(0);
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.host.sizes(),
                                                               pair.host.strides());
    }
  }

 private:
  struct Pair {
    at::Tensor device, host;
    const void* block = nullptr;
  };

  at::Storage storage_of(const at::Storage& storage) {
    auto& host = storages_[storage.unsafeGetStorageImpl()];
    if (!host) {
      void* block = storage.mutable_data();
      memory_.open(block);
      host = at::Storage(at::Storage::use_byte_size_t(), storage.nbytes(),
                         at::DataPtr(block, at::kCPU), c10::GetAllocator(at::kCPU),
                         /*resizable=*/true);
    }
    return host;
  }

  OpenMemory memory_;
  std::map<c10::StorageImpl*, at::Storage> storages_;
  std::map<c10::TensorImpl*, Pair> by_device_;
};

/// The value with each tensor in it replaced; lists keep their kind of element.
template <typename Replace>
c10::IValue with_tensors(const c10::IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (!value.isList()) return value;
  c10::impl::GenericList list = value.toList().copy();
  for (size_t i = 0; i < list.size(); ++i) {
    const c10::IValue each = list.get(i);
    if (each.isTensor()) list.set(i, replace(each.toTensor()));
  }
  return list;
}

/// The rule that a GPU's ops keep: their tensors lie on one device. Of the CPU's tensors an op of
/// the device may take those of one number without dimensions, and those that index (or put) by a
/// list of tensors; of generators none.
/// @throws c10::Error  in CUDA's words.
void check_one_device(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    const bool is_index = schema.arguments()[i].name() == "indices" && indexes_by_tensors(schema);
    if (value.isTensor()) {
      check_tensor(schema, value.toTensor(), false);
    } else if (value.isList()) {
      for (const c10::IValue& each : value.toListRef())
        if (each.isTensor()) check_tensor(schema, each.toTensor(), is_index);
    } else if (value.isGenerator()) {
      TORCH_CHECK(value.toGenerator().device() == fake_device(), "Expected a '",
                  fake_device().type(), "' device type for generator but found '",
                  value.toGenerator().device().type(), "' (in ", schema.name(), ")");
    }
  }
}

}  // namespace

void copy_over_host(const at::Tensor& from, const at::Tensor& to) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  HostTensors tensors;
  tensors.of(to).copy_(tensors.of(from));
}

void call_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t num_arguments = schema.arguments().size();
  const size_t first = stack->size() - num_arguments;
  check_one_device(schema, torch::jit::last(*stack, num_arguments));

  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  HostTensors tensors;
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    value = with_tensors(value, [&](const at::Tensor& each) { return tensors.of(each); });
    if (value.isGenerator()) value = generator_behind(value.toGenerator());
    if (value.isDevice() && value.toDevice() == fake_device()) value = at::Device(at::kCPU);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  tensors.follow_resized();
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    value = with_tensors(value,
                         [&](const at::Tensor& each) { return tensors.on_device(schema, each); });
  }
}

}  // namespace medusa::fixtures
