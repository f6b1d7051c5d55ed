// Stands for device_runtime.cu in builds without a CUDA compiler.
#include "backbone/cuda/device_runtime.h"

namespace medusa {

DeviceRuntime* cuda_runtime() { return nullptr; }

}  // namespace medusa
