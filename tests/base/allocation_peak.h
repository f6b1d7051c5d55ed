// How much memory operator new had given out at once, in the test binary that links this.
#pragma once

#include <cstddef>

namespace medusa::fixtures {

/// Bytes given out now.
size_t allocated_bytes();

/// Starts measuring anew: afterwards peak_bytes() is at least what is given out now.
void reset_peak();
size_t peak_bytes();

}  // namespace medusa::fixtures
