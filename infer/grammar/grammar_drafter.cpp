#include "infer/grammar/grammar_drafter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "infer/drafter_spec.h"
#include "infer/tree_builder.h"

namespace medusa {
namespace {

/// How probable a forced token is accepted if the one before it is: the text must come, but the
/// model may cut it into other tokens.
constexpr double kForcedAcceptance = 0.9;

/// Whoever drafts has its tree pruned, and chose its tokens outright.
bool may_be_changed(const CandidateTree& tree) {
  return tree.num_verify == tree.size() && !tree.draft_probs.defined();
}

}  // namespace

GrammarDrafter::GrammarDrafter(std::unique_ptr<Drafter> drafter, DrafterKind kind,
                               const CompiledGrammar& grammar)
    : drafter_(std::move(drafter)), kind_(kind), path_(grammar.make_matcher()) {}

void GrammarDrafter::begin(std::span<const TokenId> prompt) {
  drafter_->begin(prompt);
  num_followed_ = prompt.size();
}

/// Takes what the text has gained. @returns  whether it goes on inside the grammar.
bool GrammarDrafter::follow(std::span<const TokenId> tokens) {
  for (; num_followed_ < tokens.size(); ++num_followed_)
    if (!path_.take(tokens[num_followed_])) return false;
  return !path_.matcher().has_ended();
}

/// The nodes that may stand, ascending. The matcher is back at the root afterwards.
std::vector<size_t> GrammarDrafter::allowed_nodes(const CandidateTree& tree) {
  std::vector<size_t> allowed{0};
  std::vector<std::vector<TokenId>> paths(tree.tokens.size());  // below the root, to each of these
  for (size_t node = 1; node < tree.tokens.size(); ++node) {
    const auto parent = static_cast<size_t>(tree.parents[node]);
    if (!std::binary_search(allowed.begin(), allowed.end(), parent)) continue;
    path_.go_to(paths[parent]);
    if (!path_.go_on(tree.tokens[node])) continue;
    paths[node] = paths[parent];
    paths[node].push_back(tree.tokens[node]);
    allowed.push_back(node);
  }
  path_.go_to({});
  return allowed;
}

CandidateTree GrammarDrafter::propose(const DraftContext& context, const Random& random) {
  CandidateTree drafted = drafter_->propose(context, random);
  if (!follow(context.tokens) || !may_be_changed(drafted)) return drafted;
  std::vector<size_t> nodes = allowed_nodes(drafted);
  const std::vector<TokenId> forced =
      path_.matcher().forced_tokens(std::min(context.max_depth, context.max_nodes - 1));
  // The forced path has room first: a node's parent comes before it, so the last ones may go.
  nodes.resize(std::min(nodes.size(), static_cast<size_t>(context.max_nodes) - forced.size()));
  CandidateTree kept = part_of(drafted, nodes);
  std::vector<double> accept_probs = std::move(kept.accept_probs);
  std::vector<DrafterKind> drafters = std::move(kept.drafters);
  kept.accept_probs.clear();
  kept.drafters.clear();
  TreeBuilder builder(context, std::move(kept));
  int32_t node = 0;
  double probability = 1;
  for (const TokenId token : forced) {
    node = builder.child(node, token);
    MEDUSA_ASSERT(node > 0, token);
    if (!accept_probs.empty()) {
      probability *= kForcedAcceptance;
      accept_probs.resize(static_cast<size_t>(builder.size()), 0);
      double& own = accept_probs[static_cast<size_t>(node)];
      own = std::max(own, probability);
    }
    if (!drafters.empty()) drafters.resize(static_cast<size_t>(builder.size()), kind_);
  }
  CandidateTree tree = std::move(builder).take();
  tree.accept_probs = std::move(accept_probs);
  tree.drafters = std::move(drafters);
  if (!tree.confidences.empty())
    tree.confidences.resize(tree.tokens.size(), static_cast<float>(kForcedAcceptance));
  return tree;
}

DrafterFactory inside_grammar(DrafterFactory made, DrafterKind kind,
                              std::shared_ptr<const CompiledGrammar> grammar) {
  if (!is_mergeable(kind) && kind != DrafterKind::Merge) return made;
  return [made = std::move(made), kind, grammar = std::move(grammar)] {
    return std::make_unique<GrammarDrafter>(made(), kind, *grammar);
  };
}

}  // namespace medusa
