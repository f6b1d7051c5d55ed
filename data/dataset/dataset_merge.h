// Joins the parts that several processes distilled.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace medusa {

/// Copies the shards of all parts into one dataset, byte for byte those that one process would have
/// written. The target is complete or absent.
/// @param parts   folders that DatasetWriter filled, each with a DatasetPart; in any order, at
/// least
///                one.
/// @param target  a new folder.
/// @returns       shards copied.
/// @throws UserError  the target exists; a part is not there, damaged, or of another run; a shard
///                    is missing or in two parts; the disk is full.
int64_t merge_datasets(const std::vector<std::filesystem::path>& parts,
                       const std::filesystem::path& target);

}  // namespace medusa
