#include "heads/path_drafts.h"

#include "base/check.h"

namespace medusa {

PathDrafts::PathDrafts(HeadsRunner& runner, const at::Tensor& hidden, TokenId root,
                       int64_t num_heads)
    : runner_(runner), hidden_(hidden.reshape({1, -1})), root_(root) {
  if (runner.is_corrected())
    all_ = &runner.begin(hidden_, root, num_heads);
  else if (!runner.depends_on_paths())
    all_ = &runner.draft(hidden_, {&root, 1}, num_heads);
}

NextDrafts PathDrafts::after(std::span<const TokenId> paths, int64_t depth) {
  const bool corrects = runner_.is_corrected() && depth > 0;
  if (all_ != nullptr && !corrects) return {*all_, depth, true};
  const int64_t num_paths = depth == 0 ? 1 : static_cast<int64_t>(paths.size()) / depth;
  MEDUSA_ASSERT(num_paths > 0 && static_cast<size_t>(num_paths * depth) == paths.size(), depth,
                paths.size());
  rows_.clear();
  for (int64_t m = 0; m < num_paths; ++m) {
    const auto path = paths.subspan(static_cast<size_t>(m * depth), static_cast<size_t>(depth));
    if (!corrects) rows_.push_back(root_);
    rows_.insert(rows_.end(), corrects ? path.end() - 1 : path.begin(), path.end());
  }
  if (corrects) return {runner_.correct(depth, rows_), 0, false};
  HeadQuery query{.hidden = hidden_, .tokens = rows_, .stride = 1 + depth};
  query.num_positions = num_paths;
  query.first_head = depth;
  query.num_heads = 1;
  return {runner_.draft(query), 0, false};
}

}  // namespace medusa
