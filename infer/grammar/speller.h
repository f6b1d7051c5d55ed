// What tokens spell, and what of it no text may hold.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/grammar/grammar.h"

namespace medusa {

/// The texts of tokens. Constant once made.
class Speller {
 public:
  static constexpr char kLead = '\xED';  // of surrogates, and of other characters

  explicit Speller(const GrammarVocabulary& vocabulary)
      : bytes_(vocabulary.bytes), may_come_(bytes_.size()) {
    for (const TokenId end : vocabulary.ends) {
      may_come_[static_cast<size_t>(end)] = true;
      bytes_[static_cast<size_t>(end)].clear();
    }
    for (size_t id = 0; id < bytes_.size(); ++id) {
      const std::string& own = bytes_[id];
      if (own.empty()) continue;
      may_come_[id] = true;
      if (is_second(own[0])) behind_lead_.push_back(static_cast<TokenId>(id));
      for (size_t i = 0; i + 1 < own.size(); ++i)
        if (own[i] == kLead && is_second(own[i + 1])) {
          inside_.push_back(static_cast<TokenId>(id));
          break;
        }
    }
  }

  /// Whether a token stands for a text, or ends one.
  bool may_come(TokenId token) const {
    return token >= 0 && static_cast<size_t>(token) < may_come_.size() &&
           may_come_[static_cast<size_t>(token)];
  }

  size_t mask_words() const { return (bytes_.size() + 31) / 32; }

  /// Of a token that stands for a text; none of one that ends it.
  const std::string& bytes(TokenId token) const { return bytes_[static_cast<size_t>(token)]; }

  /// Whether a token brings a surrogate, which the library's rules let come and UTF-8 does not
  /// have.
  /// @param after_lead  the text before it ends in kLead.
  bool makes_surrogate(TokenId token, bool after_lead) const {
    const std::string& own = bytes(token);
    return (after_lead && !own.empty() && is_second(own[0])) ||
           std::binary_search(inside_.begin(), inside_.end(), token);
  }

  /// Takes such tokens out of a mask.
  void clear_surrogates(std::span<int32_t> mask, bool after_lead) const {
    const auto clear = [&](const std::vector<TokenId>& tokens) {
      for (const TokenId token : tokens)
        mask[static_cast<size_t>(token) / 32] &= ~(1 << static_cast<uint32_t>(token) % 32);
    };
    clear(inside_);
    if (after_lead) clear(behind_lead_);
  }

  /// The longest token of a mask; nothing where two of them begin differently, or the text may end.
  std::optional<TokenId> only_way(std::span<const int32_t> mask) const {
    std::optional<TokenId> longest;
    for (size_t i = 0; i < mask.size(); ++i)
      for (auto left = static_cast<uint32_t>(mask[i]); left != 0; left &= left - 1) {
        const auto id = static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(left)));
        const std::string_view found = bytes(id), before = longest ? bytes(*longest) : found;
        if (found.empty() || !(found.starts_with(before) || before.starts_with(found))) return {};
        if (!longest || found.size() > before.size()) longest = id;
      }
    return longest;
  }

 private:
  /// Of a surrogate, behind kLead.
  static bool is_second(char byte) {
    return static_cast<unsigned char>(byte) >= 0xA0 && static_cast<unsigned char>(byte) < 0xC0;
  }

  std::vector<std::string> bytes_;  // [V]
  std::vector<bool> may_come_;
  std::vector<TokenId> inside_, behind_lead_;  // ascending: have a surrogate; may end one
};

}  // namespace medusa
