#include "infer/grammar/counts.h"

#include <fmt/format.h>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kLargest = 100;

/// A hundred of them.
std::string block_of(const std::string& item) { return fmt::format("({}{{{}}})", item, kLargest); }

std::string exactly(const std::string& item, int64_t count) {
  if (count <= kLargest) return fmt::format("{}{{{}}}", item, count);
  const int64_t rest = count % kLargest;
  const std::string blocks = exactly(block_of(item), count / kLargest);
  return rest == 0 ? blocks : blocks + fmt::format("{}{{{}}}", item, rest);
}

/// Each number of them is read in one way: all blocks but the last, then fewer than a block has;
/// or all blocks, then the rest.
std::string at_most(const std::string& item, int64_t count) {
  if (count <= kLargest) return fmt::format("{}{{0,{}}}", item, count);
  const std::string block = block_of(item);
  return fmt::format("({}{}{{0,{}}}|{}{}{{0,{}}})", at_most(block, count / kLargest - 1), item,
                     kLargest - 1, exactly(block, count / kLargest), item, count % kLargest);
}

}  // namespace

std::string counted(const std::string& item, int64_t least, std::optional<int64_t> most) {
  MEDUSA_ASSERT(least >= 0 && (!most || least <= *most), least);
  if (most == least && least <= kLargest) return fmt::format("{}{{{}}}", item, least);
  if (least <= kLargest && !most) return fmt::format("{}{{{},}}", item, least);
  if (least <= kLargest && *most <= kLargest) return fmt::format("{}{{{},{}}}", item, least, *most);
  const std::string first = least == 0 ? "" : exactly(item, least);
  if (!most) return first + item + "*";
  return *most == least ? first : first + at_most(item, *most - least);
}

}  // namespace medusa
