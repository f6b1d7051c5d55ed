#include "infer/drafters/prompt_lookup_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/match_confidence.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/infer_config.h"
#include "infer/tree_builder.h"

namespace medusa {
namespace {

/// A continuation that is not proposed yet.
struct Branch {
  int32_t node = 0;     // of the tree, whose child it would be
  int32_t matched = 0;  // tokens of the match that it comes from
  int32_t length = 0;   // tokens of the string that it follows
  double probability =
      1;  // share of the occurrences of the match that went on as the path to it does
  double confidence = 1;  // that it is right if its node is
  SuffixAutomaton::Continuation next;
};

/// Proposes continuations of a text's suffixes.
class Proposal {
 public:
  Proposal(const SuffixAutomaton& text, const PromptLookupConfig& config,
           const DraftContext& context)
      : text_(text), config_(config), tree_(context) {}

  /// Puts all continuations of a string on the list; node is the one that they would follow.
  void open(int32_t node, const SuffixAutomaton::Match& string, int32_t matched,
            double probability) {
    const auto found = text_.continuations(string.state);
    int64_t total = 0;
    for (const auto& each : found) total += each.count;
    for (const auto& each : found)
      open_.push_back(
          {node, matched, string.length,
           probability * static_cast<double>(each.count) / static_cast<double>(total),
           match_confidence({string.length, each.count, total, static_cast<int64_t>(found.size())},
                            kTrustInOwnText),
           each});
  }

  /// Proposes the best continuation on the list, and the best that follows each of its tokens.
  /// @returns  false: nothing is left.
  bool grow() {
    while (!open_.empty() && !tree_.full()) {
      Branch branch = take_best();
      // A shorter match says nothing new about a token that a longer one has proposed.
      if (tree_.find(branch.node, branch.next.token) >= 0) continue;
      while (append(branch)) {
      }
      return true;
    }
    return false;
  }

  CandidateTree take() && { return std::move(tree_).take(); }

 private:
  Branch take_best() {
    const auto best =
        std::max_element(open_.begin(), open_.end(), [](const Branch& a, const Branch& b) {
          return a.matched != b.matched ? a.matched < b.matched : a.probability < b.probability;
        });
    const Branch out = *best;
    open_.erase(best);
    return out;
  }

  /// Adds the branch's token to the tree and makes the branch the best one that follows it.
  bool append(Branch& branch) {
    const int32_t node = tree_.child(branch.node, branch.next.token);
    if (node < 0) return false;
    tree_.set_confidence(node, branch.confidence);
    if (tree_.depth(node) >= config_.num_draft) return false;
    SuffixAutomaton::Match string{branch.next.state, branch.length + 1};
    // Nothing follows the end of the text; a shorter context may have come up before it.
    while (text_.continuations(string.state).empty()) string = text_.shorter(string);
    if (string.length < config_.min_ngram) return false;
    const size_t first = open_.size();
    open(node, string, branch.matched, branch.probability);
    branch = open_[first];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(first));
    return true;
  }

  const SuffixAutomaton& text_;
  const PromptLookupConfig& config_;
  TreeBuilder tree_;
  std::vector<Branch> open_;  // of equal ones the first is the best
};

}  // namespace

void PromptLookupConfig::validate() const {
  if (min_ngram > max_ngram)
    throw UserError(fmt::format(
        "prompt_lookup: min_ngram is {}, expected at most max_ngram, {}; lower it or raise "
        "max_ngram",
        min_ngram, max_ngram));
}

PromptLookupDrafter::PromptLookupDrafter(const PromptLookupConfig& config)
    : config_(config), text_(config.max_ngram + config.num_draft) {}

void PromptLookupDrafter::read(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens.subspan(static_cast<size_t>(text_.size()))) text_.append(token);
}

CandidateTree PromptLookupDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  read(context.tokens);
  Proposal proposal(text_, config_, context);
  for (auto match = text_.longest_match(config_.max_ngram); match.length >= config_.min_ngram;
       match = text_.shorter(match))
    proposal.open(0, match, match.length, 1);
  for (int32_t i = 0; i < config_.branches && proposal.grow(); ++i) {
  }
  return std::move(proposal).take();
}

const DrafterSpec kPromptLookupDrafter{
    .kind = DrafterKind::PromptLookup,
    .summary = "what followed the last tokens earlier in the same text",
    .level = SupportLevel::Supported,
    .is_mergeable = true,
    .needs = [](const InferConfig&) { return DraftNeeds{.cost = true}; },
    .make = [](const InferConfig& config, const DraftParts&) -> DrafterFactory {
      return [own = config.prompt_lookup] { return std::make_unique<PromptLookupDrafter>(own); };
    },
    .weigh = weigh_lookups};

}  // namespace medusa
