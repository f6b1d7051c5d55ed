// Random numbers of the fake device: a generator of its own type, as a GPU's is, that draws the
// CPU's numbers.
#pragma once

#include <ATen/core/Generator.h>

namespace medusa::fixtures {

at::Generator make_fake_generator();

/// @param generator  of the fake device.
/// @returns          the CPU's, which draws for it.
at::Generator generator_behind(const at::Generator& generator);

}  // namespace medusa::fixtures
