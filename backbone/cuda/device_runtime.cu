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

class PinnedBuffer : public HostBuffer {
 public:
  explicit PinnedBuffer(size_t bytes) : bytes_(bytes) {
    check(cudaMallocHost(&data_, bytes), "allocate pinned memory");
    check(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "make an event");
  }
  ~PinnedBuffer() override {
    cudaEventSynchronize(arrived_);
    cudaEventDestroy(arrived_);
    cudaFreeHost(data_);
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* data() override { return data_; }
  void post(const void* device) override {
    check(cudaMemcpyAsync(data_, device, bytes_, cudaMemcpyDeviceToHost, nullptr),
          "copy to the host");
    check(cudaEventRecord(arrived_, nullptr), "record an event");
  }
  void wait() override { check(cudaEventSynchronize(arrived_), "finish a step"); }

 private:
  size_t bytes_;
  void* data_ = nullptr;
  cudaEvent_t arrived_ = nullptr;
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
    return std::make_unique<PinnedBuffer>(bytes);
  }
};

}  // namespace

DeviceRuntime* cuda_runtime() {
  static CudaRuntime only;
  return &only;
}

}  // namespace medusa
