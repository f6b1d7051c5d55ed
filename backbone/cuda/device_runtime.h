// What a decoding loop needs of CUDA besides kernels: graphs, pinned memory, and waiting for a
// copy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "backbone/cuda/device_types.h"

namespace medusa {

/// A sequence of kernels that was recorded once and is started as one.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Starts it behind all earlier work of the default stream. Does not wait.
  virtual void replay() = 0;
};

/// Memory of the host that kernels write to, and the moment when they have.
class HostBuffer {
 public:
  virtual ~HostBuffer() = default;
  /// Where kernels write.
  virtual void* on_device() = 0;
  /// What they wrote, after wait().
  virtual const void* data() = 0;
  /// Marks what all earlier work of the default stream writes. Does not wait.
  virtual void mark() = 0;
  /// Waits for what the last mark() has marked, and only for that.
  virtual void wait() = 0;
};

/// Memory of the host that the device reads from.
class UploadBuffer {
 public:
  virtual ~UploadBuffer() = default;
  /// Waits until the last send() has been read.
  virtual void* data() = 0;
  /// Copies to the device, behind all earlier work of the default stream. Does not wait.
  virtual void send(void* device) = 0;
};

/// Thread safety: one thread at a time.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  /// @param work  launches kernels on the stream that it is given, which all stand in the graph;
  ///              nothing else: no allocation, no waiting. It has run before, so that its kernels
  ///              are loaded, and an emulated graph keeps it.
  /// @throws std::runtime_error  CUDA refused.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void(DeviceStream)>& work) = 0;

  virtual std::unique_ptr<HostBuffer> make_host_buffer(size_t bytes) = 0;
  virtual std::unique_ptr<UploadBuffer> make_upload_buffer(size_t bytes) = 0;
};

/// That of this build; null where it was made without a CUDA compiler.
DeviceRuntime* cuda_runtime();

}  // namespace medusa
