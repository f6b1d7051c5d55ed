#include "tests/device/fake_device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/device/fake_generator.h"
#include "tests/device/guarded_memory.h"

namespace medusa::fixtures {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

/// One device with one stream, on which everything is done when it is asked for. With it autograd
/// has a thread of the device, as it has for a GPU.
class FakeGuard : public c10::impl::NoOpDeviceGuardImpl<kType> {
 public:
  c10::Device exchangeDevice(c10::Device) const override { return fake_device(); }
  c10::Device getDevice() const override { return fake_device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, fake_device()); }
};

/// What LibTorch asks of an accelerator beside its ops.
class FakeHooks : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return make_fake_generator(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator generator = make_fake_generator();
    return generator;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, FakeGuard)
const c10::AllocatorRegisterer<kType> kAllocator(&guarded_allocator());
const bool kHooks = [] {
  at::RegisterPrivateUse1HooksInterface(new FakeHooks);  // kept, as LibTorch wants it
  return true;
}();

}  // namespace

at::Device fake_device() { return {kType, 0}; }

void use_fake_device() { c10::register_privateuse1_backend("fake"); }

bool uses_fake_device() { return c10::is_privateuse1_backend_registered(); }

}  // namespace medusa::fixtures
