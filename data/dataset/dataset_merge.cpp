#include "data/dataset/dataset_merge.h"

#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/replace_folder.h"
#include "data/dataset/shard_file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Shards = std::map<int64_t, fs::path>;

Shards collect_shards(const std::vector<fs::path>& parts) {
  Shards all;
  for (const fs::path& part : parts) {
    if (!fs::is_directory(part))
      throw UserError(fmt::format(
          "{}: no such folder, expected a part of a dataset; check the path, or make it "
          "with medusa distill --shard",
          part.string()));
    for (const auto& [number, path] : find_shards(part)) {
      const auto [known, added] = all.emplace(number, path);
      if (!added)
        throw UserError(fmt::format(
            "{}: {} holds this shard as well, expected each in one part; leave one of them out",
            path.string(), known->second.parent_path().string()));
    }
  }
  return all;
}

/// Each shard is read whole and checked, and is as far behind the first as its number says.
/// @returns  all of them in order, without their samples.
std::vector<ShardFile> check_shards(const Shards& shards, const fs::path& target) {
  if (shards.empty())
    throw UserError(
        fmt::format("{}: the parts hold no shard, expected some; run medusa distill --shard first",
                    target.string()));
  std::vector<ShardFile> checked;
  int64_t prompts = 0;
  bool ended = false;
  for (const auto& [number, path] : shards) {
    if (number != std::ssize(checked)) break;
    ShardFile& shard = checked.emplace_back(path);
    const ShardFile& first = checked.front();
    if (const auto difference = find_difference(shard.header().info, first.header().info))
      throw UserError(fmt::format(
          "{}: made with {}, {} with {}, expected parts of one run; distil it again with the other "
          "parts' settings",
          path.string(), difference->left, first.path().string(), difference->right));
    if (shard.header().first != prompts || shard.header().total != first.header().total)
      throw UserError(fmt::format(
          "{}: begins with prompt {} of {}, expected prompt {} of {}; distil it again with the "
          "other parts' settings",
          path.string(), shard.header().first, shard.header().total, prompts,
          first.header().total));
    prompts += shard.header().count;
    ended = shard.header().last;
    (void)shard.take_samples();
  }
  if (ended && checked.size() == shards.size()) return checked;
  throw UserError(fmt::format(
      "{}: {} is in none of the parts, expected all up to the last one; name the part that it "
      "belongs to, or let medusa distill --shard finish it",
      target.string(), shard_name(std::ssize(checked))));
}

}  // namespace

int64_t merge_datasets(const std::vector<fs::path>& parts, const fs::path& target) {
  MEDUSA_ASSERT(!parts.empty());
  if (fs::exists(target))
    throw UserError(fmt::format(
        "{}: there is a dataset already, expected a new folder; remove it or set another run",
        target.string()));
  const Shards shards = collect_shards(parts);
  const std::vector<ShardFile> checked = check_shards(shards, target);
  create_folder(target, [&](const fs::path& fresh) {
    for (const ShardFile& shard : checked)
      write_file(fresh / shard.path().filename(), shard.bytes());
  });
  return std::ssize(shards);
}

}  // namespace medusa
