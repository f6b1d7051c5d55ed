// Graphs and host buffers without a GPU: a graph is the work itself, done again.
#include <cstring>
#include <stdexcept>
#include <vector>

#include "backbone/cuda/device_runtime.h"
#include "tests/cuda/every_device.h"

namespace medusa {
namespace {

class WorkAgain : public DeviceGraph {
 public:
  explicit WorkAgain(std::function<void(DeviceStream)> work) : work_(std::move(work)) {}
  void replay() override { work_(nullptr); }

 private:
  std::function<void(DeviceStream)> work_;
};

class PageableBuffer : public HostBuffer {
 public:
  explicit PageableBuffer(size_t bytes) : bytes_(bytes), written_(bytes), marked_(bytes) {}
  void* on_device() override { return written_.data(); }
  const void* data() override { return bytes_.data(); }
  void mark() override { marked_ = written_; }
  // Not before: who reads without waiting shall read something else, and so shall who lets a later
  // step write before this one was read.
  void wait() override {
    if (marked_ != written_) throw std::logic_error("a host buffer was written before it was read");
    bytes_ = marked_;
  }

 private:
  std::vector<unsigned char> bytes_, written_, marked_;
};

class PageableUpload : public UploadBuffer {
 public:
  explicit PageableUpload(size_t bytes) : bytes_(bytes) {}
  void* data() override { return bytes_.data(); }
  void send(void* device) override { std::memcpy(device, bytes_.data(), bytes_.size()); }

 private:
  std::vector<unsigned char> bytes_;
};

class EmulatedRuntime : public DeviceRuntime {
 public:
  std::unique_ptr<DeviceGraph> capture(const std::function<void(DeviceStream)>& work) override {
    return std::make_unique<WorkAgain>(work);
  }
  std::unique_ptr<HostBuffer> make_host_buffer(size_t bytes) override {
    return std::make_unique<PageableBuffer>(bytes);
  }
  std::unique_ptr<UploadBuffer> make_upload_buffer(size_t bytes) override {
    return std::make_unique<PageableUpload>(bytes);
  }
};

}  // namespace

DeviceRuntime* emulated_runtime() {
  static EmulatedRuntime only;
  return &only;
}

}  // namespace medusa
