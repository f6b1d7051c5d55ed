// Graphs and mailboxes without a GPU: a graph is the work itself, done again; a post arrives at
// once.
#include <cstring>
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
  explicit PageableBuffer(size_t bytes) : bytes_(bytes), arrived_(bytes) {}
  void* data() override { return bytes_.data(); }
  void post(const void* device) override { std::memcpy(arrived_.data(), device, arrived_.size()); }
  // Not before: who reads without waiting shall read something else.
  void wait() override { bytes_ = arrived_; }

 private:
  std::vector<unsigned char> bytes_, arrived_;
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
