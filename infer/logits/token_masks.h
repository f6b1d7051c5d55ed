// A bias on some tokens' logits, and tokens that cannot come at all.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "infer/logits/logits_processor.h"

namespace medusa {

/// Adds a number to each of some tokens' logits, as OpenAI's logit_bias.
class LogitBias : public LogitsProcessor {
 public:
  using Entry = std::pair<TokenId, float>;
  explicit LogitBias(std::vector<Entry> bias) : bias_(std::move(bias)) {}
  void process(std::span<const TokenId> path, std::span<float> row) override;

 private:
  std::vector<Entry> bias_;
};

/// Lets some tokens alone come.
class AllowedTokens : public LogitsProcessor {
 public:
  /// @param allowed  at least one, ascending, none twice.
  explicit AllowedTokens(std::vector<TokenId> allowed);
  void process(std::span<const TokenId> path, std::span<float> row) override;

 private:
  std::vector<TokenId> allowed_;
};

/// Keeps some tokens from coming while the text has fewer than so many.
class BannedTokens : public LogitsProcessor {
 public:
  /// @param until  tokens of the text, after which they may come; INT64_MAX: never.
  BannedTokens(std::vector<TokenId> banned, int64_t until)
      : banned_(std::move(banned)), until_(until) {}
  void take(TokenId /*token*/) override { ++num_tokens_; }
  void process(std::span<const TokenId> path, std::span<float> row) override;

 private:
  std::vector<TokenId> banned_;
  int64_t until_;
  int64_t num_tokens_ = 0;  // of the text
};

}  // namespace medusa
