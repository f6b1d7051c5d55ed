#include "infer/drafters/eagle3_drafter.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/check.h"
#include "infer/drafter_spec.h"
#include "infer/infer_config.h"

namespace medusa {

void Eagle3Drafter::begin(std::span<const TokenId> prompt) {
  prompt_.assign(prompt.begin(), prompt.end());
}

void Eagle3Drafter::read_prompt(const at::Tensor& features) {
  const auto count = static_cast<size_t>(features.size(0));
  MEDUSA_ASSERT(prompt_read_ + count < prompt_.size(), prompt_read_, count, prompt_.size());
  state_ = text_.extend(features, std::span(prompt_).subspan(prompt_read_ + 1, count));
  prompt_read_ += count;
}

/// Runs what the text has got since the last proposal.
void Eagle3Drafter::catch_up() {
  if (features_.empty()) return;
  state_ = text_.extend(features_.size() == 1 ? features_[0] : at::cat(features_), tokens_);
  features_.clear();
  tokens_.clear();
}

/// @param states  [nodes, H] of these nodes.
void Eagle3Drafter::add_children(std::span<const int32_t> nodes, const at::Tensor& states,
                                 BestPaths& paths) {
  const int64_t count = std::min<int64_t>(config_.beam, model_.vocab_size());
  const Eagle3Model::Drafts drafts = model_.drafts(states, count);
  for (size_t i = 0; i < drafts.tokens.size(); ++i)
    paths.add(nodes[i / static_cast<size_t>(count)], drafts.tokens[i], drafts.log_probs[i]);
}

/// @returns  [nodes, H]
at::Tensor Eagle3Drafter::run(std::span<const int32_t> nodes, BestPaths& paths, Grown& grown) {
  std::vector<int64_t> above;  // rows of grown.states
  for (const int32_t node : nodes) {
    BestPaths::Node& each = paths.nodes()[static_cast<size_t>(node)];
    const int32_t parent = paths.nodes()[static_cast<size_t>(each.parent)].place;
    each.place = static_cast<int32_t>(grown.tokens.size());
    grown.tokens.push_back(each.token);
    grown.parents.push_back(parent);
    above.push_back(parent + 1);
  }
  const at::Tensor rows = at::tensor(above, at::kLong).to(grown.states.device());
  at::Tensor states = text_.grow(grown.tokens, grown.parents, grown.states.index_select(0, rows));
  grown.states = at::cat({grown.states, states});
  return states;
}

CandidateTree Eagle3Drafter::propose(const DraftContext& context, const Random& /*random*/) {
  const c10::InferenceMode no_grad;
  const TokenId root = context.tokens.back();
  const int32_t nodes = std::min(config_.nodes, context.max_nodes);
  const int32_t depth = std::min(config_.depth, context.max_depth);
  if (nodes < 2 || depth < 1) return root_only(root);
  catch_up();
  if (!state_.defined()) return root_only(root);
  MEDUSA_ASSERT(text_.length() + 1 == std::ssize(context.tokens), text_.length());

  BestPaths paths(root, nodes);
  Grown grown{{}, {}, state_};
  const std::vector<int32_t> roots{0};
  add_children(roots, state_, paths);
  paths.keep_best();
  for (int32_t level = 1; level < depth; ++level) {
    const std::vector<int32_t> beam = paths.best_of(level, static_cast<size_t>(config_.beam));
    if (beam.empty()) break;
    add_children(beam, run(beam, paths, grown), paths);
    paths.keep_best();
  }
  return paths.tree();
}

/// The step's tree may be that of several drafters: what it made text of is what counts.
void Eagle3Drafter::observe(const CandidateTree& tree, const TargetOutput& output,
                            const Acceptance& accepted) {
  std::vector<int64_t> nodes{0};
  nodes.insert(nodes.end(), accepted.path.begin(), accepted.path.end());
  const at::Tensor rows = at::tensor(nodes, at::kLong).to(output.features.device());
  features_.push_back(output.features.index_select(0, rows));
  for (const TokenId token : emitted_tokens(tree, accepted.path, accepted.next))
    tokens_.push_back(token);
}

const DrafterSpec kEagle3Drafter{
    .kind = DrafterKind::Eagle3,
    .summary = "the most probable paths of a published EAGLE-3 draft",
    .level = SupportLevel::Experimental,
    .is_mergeable = true,
    .needs = [](const InferConfig&) { return DraftNeeds{.eagle3 = true}; },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      return [own = config.eagle3, model = parts.eagle3] {
        return std::make_unique<Eagle3Drafter>(*model, own);
      };
    }};

}  // namespace medusa
