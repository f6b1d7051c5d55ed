// Twelve questions for whoever brings none.
#pragma once

#include <vector>

#include "data/prompts.h"

namespace medusa {

/// Those of configs/demo_questions.jsonl.
std::vector<Prompt> sample_questions();

}  // namespace medusa
