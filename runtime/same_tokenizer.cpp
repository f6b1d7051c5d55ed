#include "runtime/same_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace medusa {
namespace {

/// A token's bytes on one line: "\n", and what is not UTF-8 replaced.
std::string shown(const Tokenizer& tokenizer, TokenId id) {
  if (id >= tokenizer.vocab_size()) return "not there";
  const std::string text = json_text(nlohmann::json(tokenizer.bytes(id)));
  return text + (tokenizer.is_special(id) ? " (special)" : "");
}

bool same(const Tokenizer& a, const Tokenizer& b, TokenId id) {
  return id < a.vocab_size() && id < b.vocab_size() && a.bytes(id) == b.bytes(id) &&
         a.is_special(id) == b.is_special(id);
}

}  // namespace

void check_same_tokenizer(const Tokenizer& target, const std::string& target_name,
                          const Tokenizer& draft, const std::string& draft_name) {
  const auto all = static_cast<TokenId>(std::max(target.vocab_size(), draft.vocab_size()));
  for (TokenId id = 0; id < all; ++id)
    if (!same(target, draft, id))
      throw UserError(
          fmt::format("{}: its token {} is {}, in {} it is {}, expected the same tokenizer; use a "
                      "draft model of "
                      "the same family, or make one with medusa make-draft",
                      draft_name, id, shown(draft, id), target_name, shown(target, id)));
}

}  // namespace medusa
