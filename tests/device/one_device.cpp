#include "tests/device/one_device.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <string_view>

#include "tests/device/fake_device.h"

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

}  // namespace

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

}  // namespace medusa::fixtures
