// Which samples may judge heads: none that they were trained on.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/dataset/dataset_reader.h"
#include "heads/heads_checkpoint.h"

namespace medusa {

/// Heads say by which seed and fraction samples were kept out of their training, and of that of the
/// heads that they began as. A smaller fraction is part of a larger one.
/// @param heads     for the message: their folder.
/// @param seed      of the samples that are to judge, or that judge heads which begin as these.
/// @param fraction  of them.
/// @throws UserError  some of these were trained on. Of heads from before they said so, and of
/// other
///                    text, that is not known to be.
void check_kept_out(std::string_view heads, const HeadsManifest& manifest,
                    const DatasetReader& dataset, uint64_t seed, double fraction);

}  // namespace medusa
