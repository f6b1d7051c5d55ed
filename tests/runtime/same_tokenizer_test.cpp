#include <gtest/gtest.h>

#include "runtime/drafting.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

/// Tokens as listed.
class ListedTokenizer : public Tokenizer {
 public:
  explicit ListedTokenizer(std::vector<std::string> pieces, TokenId special = -1)
      : pieces_(std::move(pieces)), special_(special) {}
  std::vector<TokenId> encode(std::string_view, bool) const override { return {}; }
  std::string bytes(TokenId id) const override { return pieces_.at(static_cast<size_t>(id)); }
  int64_t vocab_size() const override { return std::ssize(pieces_); }
  bool is_special(TokenId id) const override { return id == special_; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::optional<TokenId> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  const std::string& chat_template() const override { return none_; }
  const std::string& fingerprint() const override { return none_; }

 private:
  std::vector<std::string> pieces_;
  TokenId special_;
  std::string none_;
};

std::string difference(const ListedTokenizer& target, const ListedTokenizer& draft) {
  return fixtures::error_text([&] { check_same_tokenizer(target, "big", draft, "small"); });
}

TEST(SameTokenizer, EqualTokensPass) {
  EXPECT_EQ(difference(ListedTokenizer({"a", "b"}, 1), ListedTokenizer({"a", "b"}, 1)),
            "(no error)");
}

TEST(SameTokenizer, NamesTheFirstDifference) {
  const std::string end =
      ", expected the same tokenizer; use a draft model of the same family, or make one with "
      "medusa "
      "make-draft";
  const ListedTokenizer target({"a", "b", "\n", "\xC3"});
  EXPECT_EQ(difference(target, ListedTokenizer({"a", "c", "x", "\xC3"})),
            "small: its token 1 is \"c\", in big it is \"b\"" + end);
  EXPECT_EQ(difference(target, ListedTokenizer({"a", "b", "\n", "\xC3"}, 2)),
            "small: its token 2 is \"\\n\" (special), in big it is \"\\n\"" + end);
  EXPECT_EQ(difference(target, ListedTokenizer({"a", "b", "\n"})),
            "small: its token 3 is not there, in big it is \"\xEF\xBF\xBD\"" + end);
}

}  // namespace
}  // namespace medusa
