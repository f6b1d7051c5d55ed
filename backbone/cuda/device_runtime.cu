#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "backbone/cuda/device_runtime.h"

namespace medusa {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA failed to ") + what + ": " +
                             cudaGetErrorString(error));
}

class CudaGraph : public DeviceGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void replay() override { check(cudaGraphLaunch(graph_, nullptr), "start a graph"); }

 private:
  cudaGraphExec_t graph_;
};

/// Pinned memory that the device sees, and the moment when it was used last.
class PinnedMemory {
 public:
  explicit PinnedMemory(size_t bytes) : bytes_(bytes) {
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped), "allocate pinned memory");
    check(cudaEventCreateWithFlags(&used_, cudaEventDisableTiming), "make an event");
  }
  ~PinnedMemory() {
    cudaEventSynchronize(used_);
    cudaEventDestroy(used_);
    cudaFreeHost(data_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* data() { return data_; }
  size_t bytes() const { return bytes_; }
  void mark() { check(cudaEventRecord(used_, nullptr), "record an event"); }
  void wait() { check(cudaEventSynchronize(used_), "finish a step"); }

 private:
  size_t bytes_;
  void* data_ = nullptr;
  cudaEvent_t used_ = nullptr;
};

class MappedHostBuffer : public HostBuffer {
 public:
  explicit MappedHostBuffer(size_t bytes) : memory_(bytes) {
    check(cudaHostGetDevicePointer(&on_device_, memory_.data(), 0), "map pinned memory");
  }
  void* on_device() override { return on_device_; }
  const void* data() override { return memory_.data(); }
  void mark() override { memory_.mark(); }
  void wait() override { memory_.wait(); }

 private:
  PinnedMemory memory_;
  void* on_device_ = nullptr;
};

class PinnedUploadBuffer : public UploadBuffer {
 public:
  explicit PinnedUploadBuffer(size_t bytes) : memory_(bytes) {}
  void* data() override {
    memory_.wait();
    return memory_.data();
  }
  void send(void* device) override {
    check(cudaMemcpyAsync(device, memory_.data(), memory_.bytes(), cudaMemcpyHostToDevice, nullptr),
          "copy");
    memory_.mark();
  }

 private:
  PinnedMemory memory_;
};

class CudaRuntime : public DeviceRuntime {
 public:
  std::unique_ptr<DeviceGraph> capture(const std::function<void(DeviceStream)>& work) override {
    cudaStream_t stream = nullptr;  // the default stream cannot be recorded
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    try {
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "record a graph");
      work(stream);
      check(cudaStreamEndCapture(stream, &graph), "end a graph");
      check(cudaGraphInstantiate(&ready, graph, 0), "prepare a graph");
    } catch (...) {
      if (graph == nullptr) cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaStreamDestroy(stream);
      throw;
    }
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return std::make_unique<CudaGraph>(ready);
  }

  std::unique_ptr<HostBuffer> make_host_buffer(size_t bytes) override {
    return std::make_unique<MappedHostBuffer>(bytes);
  }
  std::unique_ptr<UploadBuffer> make_upload_buffer(size_t bytes) override {
    return std::make_unique<PinnedUploadBuffer>(bytes);
  }
};

}  // namespace

DeviceRuntime* cuda_runtime() {
  static CudaRuntime only;
  return &only;
}

}  // namespace medusa
