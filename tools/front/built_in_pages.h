// The commands that medusa-core has, as it described them when it was built.
#pragma once

#include "tools/front/command_page.h"

namespace medusa {

/// What `medusa-core help --json` printed; its text is compiled in (tools/CMakeLists.txt).
ProgramPages built_in_pages();

}  // namespace medusa
