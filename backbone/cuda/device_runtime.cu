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

/// Pinned memory, and the moment when the last copy from or to it has ended.
class PinnedMemory {
 public:
  explicit PinnedMemory(size_t bytes) : bytes_(bytes) {
    check(cudaMallocHost(&data_, bytes), "allocate pinned memory");
    check(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "make an event");
  }
  ~PinnedMemory() {
    cudaEventSynchronize(copied_);
    cudaEventDestroy(copied_);
    cudaFreeHost(data_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* data() { return data_; }
  void copy(void* to, const void* from, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes_, kind, nullptr), "copy");
    check(cudaEventRecord(copied_, nullptr), "record an event");
  }
  void wait() { check(cudaEventSynchronize(copied_), "finish a step"); }

 private:
  size_t bytes_;
  void* data_ = nullptr;
  cudaEvent_t copied_ = nullptr;
};

class PinnedHostBuffer : public HostBuffer {
 public:
  explicit PinnedHostBuffer(size_t bytes) : memory_(bytes) {}
  void* data() override { return memory_.data(); }
  void post(const void* device) override {
    memory_.copy(memory_.data(), device, cudaMemcpyDeviceToHost);
  }
  void wait() override { memory_.wait(); }

 private:
  PinnedMemory memory_;
};

class PinnedUploadBuffer : public UploadBuffer {
 public:
  explicit PinnedUploadBuffer(size_t bytes) : memory_(bytes) {}
  void* data() override {
    memory_.wait();
    return memory_.data();
  }
  void send(void* device) override { memory_.copy(device, memory_.data(), cudaMemcpyHostToDevice); }

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
    return std::make_unique<PinnedHostBuffer>(bytes);
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
