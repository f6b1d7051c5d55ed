#include "backbone/execution_context.h"

#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/threads/thread_pool.h"

namespace medusa {

ExecutionContext::ExecutionContext(Kernels kernels)
    : ExecutionContext(ExecutionOptions{.kernels = kernels}) {}

namespace {

std::shared_ptr<ThreadPool> start_threads(int count) {
  cpu_features();  // first: threads started later inherit the permission to use AMX's registers
  return std::make_shared<ThreadPool>(count);
}

}  // namespace

ExecutionContext::ExecutionContext(const ExecutionOptions& options)
    : pool_(start_threads(options.threads)), isa_(options.isa), kernels_(options.kernels) {}

int ExecutionContext::num_threads() const { return pool_->num_threads(); }

}  // namespace medusa
