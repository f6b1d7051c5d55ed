// The curves of a training run as pictures.
#pragma once

#include <string>

#include "tools/report/training_curve.h"

namespace medusa {

/// Loss and the accuracy of each head's first draft, side by side.
std::string head_figures(const TrainingCurve& curve);

/// What moved the backbone: its own loss, KL from what it was, perplexity, greedy answers that are
/// the same. Empty if nothing of it was reported.
std::string backbone_figures(const TrainingCurve& curve);

}  // namespace medusa
