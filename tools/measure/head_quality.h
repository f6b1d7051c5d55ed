// How good heads were on validation text, as the stages of medusa train tell it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "heads/heads_checkpoint.h"

namespace medusa {

/// A list with an object for each head.
nlohmann::ordered_json quality_json(const std::vector<HeadQuality>& heads);

/// A line for each head, for people, on stderr.
void print_quality(const std::vector<HeadQuality>& heads);

}  // namespace medusa
