#include "tests/device/fake_generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <utility>

#include "base/check.h"
#include "tests/device/fake_device.h"

namespace medusa::fixtures {
namespace {

class FakeGenerator : public c10::GeneratorImpl {
 public:
  explicit FakeGenerator(at::Generator inner)
      : GeneratorImpl(fake_device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner_(std::move(inner)) {}

  const at::Generator& inner() const { return inner_; }

  void set_current_seed(uint64_t seed) override { inner_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { inner_.set_offset(offset); }
  uint64_t get_offset() const override { return inner_.get_offset(); }
  uint64_t current_seed() const override { return inner_.current_seed(); }
  uint64_t seed() override { return inner_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    inner_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  FakeGenerator* clone_impl() const override { return new FakeGenerator(inner_.clone()); }

  at::Generator inner_;
};

}  // namespace

at::Generator make_fake_generator() {
  return at::make_generator<FakeGenerator>(at::make_generator<at::CPUGeneratorImpl>());
}

at::Generator generator_behind(const at::Generator& generator) {
  const auto* fake = dynamic_cast<const FakeGenerator*>(generator.unsafeGetGeneratorImpl());
  MEDUSA_ASSERT(fake != nullptr);
  return fake->inner();
}

}  // namespace medusa::fixtures
