#include "infer/logits/token_masks.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace medusa {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

void LogitBias::process(std::span<const TokenId> /*path*/, std::span<float> row) {
  for (const auto& [id, bias] : bias_) row[static_cast<size_t>(id)] += bias;
}

AllowedTokens::AllowedTokens(std::vector<TokenId> allowed) : allowed_(std::move(allowed)) {
  MEDUSA_ASSERT(!allowed_.empty());
  MEDUSA_ASSERT(std::is_sorted(allowed_.begin(), allowed_.end(), std::less_equal<>()));
}

void AllowedTokens::process(std::span<const TokenId> /*path*/, std::span<float> row) {
  auto from = row.begin();
  for (const TokenId id : allowed_) {  // what lies between two of them
    const auto allowed = row.begin() + id;
    std::fill(from, allowed, kNever);
    from = std::next(allowed);
  }
  std::fill(from, row.end(), kNever);
}

void BannedTokens::process(std::span<const TokenId> path, std::span<float> row) {
  if (num_tokens_ + std::ssize(path) >= until_) return;
  for (const TokenId id : banned_) row[static_cast<size_t>(id)] = kNever;
}

}  // namespace medusa
