#include "infer/drafters/research/lookahead_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/research/random_token.h"
#include "infer/infer_config.h"
#include "infer/logits/target_logits.h"
#include "infer/sampling.h"
#include "infer/tree_builder.h"

namespace medusa {

void LookaheadConfig::validate() const {
  constexpr int32_t kMostRows = 64;
  const int32_t rows = (level - 1) * (window + guesses);  // the root is one of the window's
  if (rows > kMostRows)
    throw UserError(fmt::format(
        "lookahead: (level - 1) * (window + guesses) is {} rows per step, expected at most {}; "
        "lower one of the three",
        rows, kMostRows));
}

void NgramPool::add(std::span<const TokenId> ngram) {
  MEDUSA_ASSERT(ngram.size() >= 2, ngram.size());
  const auto tail = ngram.subspan(1);
  auto& list = tails_[ngram.front()];
  const auto known = std::find_if(list.begin(), list.end(), [&](const std::vector<TokenId>& each) {
    return std::equal(each.begin(), each.end(), tail.begin(), tail.end());
  });
  if (known != list.end()) {
    std::rotate(known, known + 1, list.end());  // to the end, the others keep their order
    return;
  }
  if (list.size() == per_token_) list.pop_front();
  list.emplace_back(tail.begin(), tail.end());
}

const std::deque<std::vector<TokenId>>& NgramPool::after(TokenId token) const {
  static const std::deque<std::vector<TokenId>> kNone;
  const auto found = tails_.find(token);
  return found == tails_.end() ? kNone : found->second;
}

LookaheadDrafter::LookaheadDrafter(const LookaheadConfig& config)
    : config_(config), pool_(static_cast<size_t>(config.guesses)) {}

void LookaheadDrafter::read(std::span<const TokenId> tokens) {
  const auto n = static_cast<size_t>(config_.level);
  for (; num_read_ < static_cast<int64_t>(tokens.size()); ++num_read_) {
    text_.push_back(tokens[static_cast<size_t>(num_read_)]);
    if (text_.size() < n) continue;
    pool_.add(text_);
    text_.erase(text_.begin());
  }
}

void LookaheadDrafter::fill_window(std::span<const TokenId> text, const Random& random) {
  window_.resize(static_cast<size_t>(num_rows() * config_.window));
  for (size_t i = 0; i < window_.size(); ++i) window_[i] = random_token(text, random, i);
}

/// Appends the window's rows; only the root is there already.
void LookaheadDrafter::add_window(CandidateTree& tree) {
  last_row_.clear();
  for (int32_t row = 0; row < num_rows(); ++row) {
    std::vector<int32_t> nodes;
    for (int32_t column = 0; column < config_.window; ++column) {
      if (row == 0 && column == 0) {
        nodes.push_back(0);
        continue;
      }
      tree.parents.push_back(row == 0 ? nodes.back() : last_row_[static_cast<size_t>(column)]);
      nodes.push_back(tree.size());
      tree.tokens.push_back(at(row, column));
    }
    last_row_ = std::move(nodes);
  }
}

CandidateTree LookaheadDrafter::propose(const DraftContext& context, const Random& random) {
  read(context.tokens);
  if (window_.empty()) fill_window(context.tokens, random);
  const TokenId root = context.tokens.back();
  at(0, 0) = root;

  // The drafts first: near the end of the text or of the cache they bring more.
  TreeBuilder builder(context);
  const auto& tails = pool_.after(root);
  for (auto tail = tails.rbegin(); tail != tails.rend(); ++tail) builder.add_path(*tail);
  CandidateTree tree = std::move(builder).take();
  const int32_t window_size = num_rows() * config_.window - 1;
  last_row_.clear();
  if (context.max_depth > 0 && tree.size() + window_size <= context.max_nodes) add_window(tree);
  return tree;
}

void LookaheadDrafter::observe(const CandidateTree& /*tree*/, const TargetOutput& output,
                               const Acceptance& /*accepted*/) {
  if (last_row_.empty()) return;
  std::vector<TokenId> answers;  // [W], the place after each of the last row's
  const TargetLogits logits(output.logits);
  for (const int32_t node : last_row_) answers.push_back(argmax(logits.row(node)));
  for (int32_t column = 0; column < config_.window; ++column) {
    std::vector<TokenId> ngram;
    for (int32_t row = 0; row < num_rows(); ++row) ngram.push_back(at(row, column));
    ngram.push_back(answers[static_cast<size_t>(column)]);
    pool_.add(ngram);
  }
  window_.erase(window_.begin(), window_.begin() + config_.window);
  window_.insert(window_.end(), answers.begin(), answers.end());
}

const DrafterSpec kLookaheadDrafter{
    .kind = DrafterKind::Lookahead,
    .summary = "n-grams of a pool that a window of drafts fills",
    .level = SupportLevel::Research,
    .make = [](const InferConfig& config, const DraftParts&) -> DrafterFactory {
      return [own = config.lookahead] { return std::make_unique<LookaheadDrafter>(own); };
    }};

}  // namespace medusa
