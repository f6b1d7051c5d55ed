#include "tools/profile/launch_counter.h"

#include <ATen/record_function.h>

#include <memory>

#include "backbone/cuda/device_types.h"

namespace medusa {
namespace {

thread_local int64_t num_called_ops = 0;

std::unique_ptr<at::ObserverContext> count_op(const at::RecordFunction& /*op*/) {
  ++num_called_ops;
  return nullptr;
}

}  // namespace

LaunchCounter::LaunchCounter()
    : kernels_before_(num_started_kernels),
      ops_before_(num_called_ops),
      callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&count_op).scopes({at::RecordScope::FUNCTION}))) {}

LaunchCounter::~LaunchCounter() { at::removeCallback(callback_); }

Launches LaunchCounter::count() const {
  return {num_started_kernels - kernels_before_, num_called_ops - ops_before_};
}

}  // namespace medusa
