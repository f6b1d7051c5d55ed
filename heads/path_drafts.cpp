#include "heads/path_drafts.h"

#include "base/check.h"

namespace medusa {

PathDrafts::PathDrafts(HeadsRunner& runner, const at::Tensor& hidden, TokenId root,
                       int64_t num_heads)
    : runner_(runner), hidden_(hidden.reshape({1, -1})), root_(root) {
  if (!runner.reads_paths()) all_ = &runner.draft(hidden_, {&root, 1}, num_heads);
}

NextDrafts PathDrafts::after(std::span<const TokenId> paths, int64_t depth) {
  if (all_ != nullptr) return {*all_, depth, true};
  const int64_t num_paths = depth == 0 ? 1 : static_cast<int64_t>(paths.size()) / depth;
  MEDUSA_ASSERT(num_paths > 0 && static_cast<size_t>(num_paths * depth) == paths.size(), depth,
                paths.size());
  rows_.clear();
  for (int64_t m = 0; m < num_paths; ++m) {
    const auto path = paths.subspan(static_cast<size_t>(m * depth), static_cast<size_t>(depth));
    rows_.push_back(root_);
    rows_.insert(rows_.end(), path.begin(), path.end());
  }
  HeadQuery query{.hidden = hidden_, .tokens = rows_, .stride = 1 + depth};
  query.num_positions = num_paths;
  query.first_head = depth;
  query.num_heads = 1;
  return {runner_.draft(query), 0, false};
}

}  // namespace medusa
