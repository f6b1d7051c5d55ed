// Progress as the program shows it: one line on stderr that is rewritten on a terminal, plain lines
// elsewhere.
#pragma once

#include <string>

#include "base/progress.h"

namespace medusa {

/// "12.3s", "4m05s", "1h02m".
std::string format_duration(double seconds);

/// Shows "stage  done/total unit  37%  1234 unit/s  ETA 1m20s  note". On a terminal as often as it
/// is told; elsewhere a line every ten seconds, so that a log never has a silent minute. Without a
/// total there is neither share nor ETA.
ProgressFunction stderr_progress();

}  // namespace medusa
