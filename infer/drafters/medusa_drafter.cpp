#include "infer/drafters/medusa_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "heads/path_drafts.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/adaptive_medusa_drafter.h"
#include "infer/drafters/dynamic_medusa_drafter.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/infer_config.h"

namespace medusa {

void MedusaConfig::validate() const {
  if (nodes && !dynamic)
    throw UserError(fmt::format(
        "medusa: nodes is {} and dynamic is false, expected nodes only for dynamic trees; set "
        "dynamic: true, or calibrate a tree of that size with calibrate.nodes",
        *nodes));
  if (adaptive.value_or(false) && dynamic)
    throw UserError(
        "medusa: adaptive and dynamic are both true, expected one of them: parts of the choice "
        "tree, or trees of its steps' own; set one to false");
}

/// Fills nodes [begin, end), all of one depth, from their parents' drafts.
void MedusaDrafter::fill_depth(size_t begin, size_t end, PathDrafts& drafts, CandidateTree& tree) {
  paths_.clear();
  const auto is_first_child = [&](size_t i) {
    return i == begin || shape_.parents[i] != shape_.parents[i - 1];
  };
  for (size_t i = begin; i < end; ++i) {
    if (!is_first_child(i)) continue;
    const auto& path = shape_.ancestors[static_cast<size_t>(shape_.parents[i])];
    for (size_t step = 1; step < path.size(); ++step)
      paths_.push_back(tree.tokens[static_cast<size_t>(path[step])]);
  }
  const NextDrafts next = drafts.after(paths_, shape_.depths[begin] - 1);
  int64_t parent = -1;  // among those drafted after
  for (size_t i = begin; i < end; ++i) {
    if (is_first_child(i)) ++parent;
    tree.tokens.push_back(next.token(parent, shape_.ranks[i]));
    tree.parents.push_back(shape_.parents[i]);
    tree.confidences.push_back(std::exp(next.log_prob(parent, shape_.ranks[i])));
  }
}

CandidateTree MedusaDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const TokenId root = context.tokens.back();
  CandidateTree tree = root_only(root);
  // Nodes come in order of depth, so the part that fits is a prefix and holds every node's parent,
  // and its last node is the deepest: that many heads are needed.
  const auto& depths = shape_.depths;
  const auto in_depth = std::upper_bound(depths.begin(), depths.end(), context.max_depth);
  const auto num_nodes =
      static_cast<size_t>(std::min<int64_t>(in_depth - depths.begin(), context.max_nodes));
  if (!context.hidden.defined() || num_nodes < 2) return tree;

  tree.confidences = {1};
  PathDrafts drafts(runner_, context.hidden, root, depths[num_nodes - 1]);
  for (size_t begin = 1, end = 1; begin < num_nodes; begin = end) {
    while (end < num_nodes && depths[end] == depths[begin]) ++end;
    fill_depth(begin, end, drafts, tree);
  }
  tree.num_verify = tree.size();
  return tree;
}

namespace {

/// Where the settings leave it open, only under a rule whose text no draft changes: which part of
/// the tree a step takes depends on the sequences beside it.
bool tree_adapts(const InferConfig& config, const DraftParts& parts) {
  if (config.medusa.adaptive) return *config.medusa.adaptive;
  const RuleKind rule = resolved_rule(config);
  const bool keeps_text =
      rule == RuleKind::Greedy || rule == RuleKind::Match || rule == RuleKind::Nucleus;
  return parts.tree_adapts && !config.medusa.dynamic && keeps_text;
}

}  // namespace

const DrafterSpec kMedusaDrafter{
    .kind = DrafterKind::Medusa,
    .summary = "the choice tree filled with the heads' top drafts",
    .level = SupportLevel::Supported,
    .is_mergeable = true,
    .needs =
        [](const InferConfig& config) {
          const bool adapts = config.medusa.adaptive.value_or(false);
          return DraftNeeds{.heads = true, .tree = true, .cost = adapts, .drafting_cost = adapts};
        },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      HeadsRunner& runner = *parts.runner;
      const TreeShape& shape = *parts.shape;
      if (!config.medusa.dynamic)
        return
            [&] { return behind_prefix(std::make_unique<MedusaDrafter>(runner, shape), runner); };
      const int32_t nodes = config.medusa.nodes.value_or(static_cast<int32_t>(shape.depths.size()));
      return [&, nodes] {
        return behind_prefix(
            std::make_unique<DynamicMedusaDrafter>(runner, shape.temperatures, nodes), runner);
      };
    },
    .weigh = [](const InferConfig& config, const DraftParts& parts,
                DrafterFactory made) -> DrafterFactory {
      if (!tree_adapts(config, parts)) return made;
      return [made, shape = parts.shape, cost = step_cost(parts), rates = rates_of_all_texts()] {
        return std::make_unique<AdaptiveMedusaDrafter>(made(), *shape, cost, rates);
      };
    }};

}  // namespace medusa
