// In which order files keep the rows of a head's queries and keys. In ours dimension i of a head
// is rotated together with i + D/2. Queries and keys are reordered alike, so their products stay.
#pragma once

#include <cstdint>
#include <vector>

#include "backbone/model_config.h"

namespace medusa {

/// Where rows of queries or keys go, one head after the other.
/// @param interleaved  the file rotates dimensions 2i and 2i + 1 together, as a Llama's GGUF does.
///                     Else it rotates i and i + R/2 of the first R = rotated() dimensions, as
///                     Hugging Face.
/// @returns            [heads * D] our row of each of the file's; empty where they are the same.
std::vector<int64_t> rope_permutation(const ModelConfig& config, int64_t heads, bool interleaved);

/// The file's row of each of ours.
std::vector<int64_t> inverse_rows(const std::vector<int64_t>& rows);

}  // namespace medusa
