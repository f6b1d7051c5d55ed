// Drafters for the toy target: right, wrong, and awkward ones. Each checks the context it is given.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "infer/decoder.h"
#include "infer/drafter.h"
#include "tests/infer/toy_model.h"

namespace medusa::fixtures {

/// What a drafter may know about the target: how it continues a context.
using Continuation = std::function<TokenId(std::span<const TokenId>)>;

inline int32_t add_node(CandidateTree& tree, int32_t parent, TokenId token) {
  tree.tokens.push_back(token);
  tree.parents.push_back(parent);
  return tree.size() - 1;
}

/// Builds a tree with a function, after checking the context against the toy's states.
class ToyDrafter : public Drafter {
 public:
  using Build = std::function<void(const DraftContext&, const Random&, CandidateTree&)>;
  explicit ToyDrafter(Build build) : build_(std::move(build)) {}

  void begin(std::span<const TokenId> prompt) override {
    prompt_.assign(prompt.begin(), prompt.end());
  }

  CandidateTree propose(const DraftContext& context, const Random& random) override {
    EXPECT_TRUE(std::equal(prompt_.begin(), prompt_.end(), context.tokens.begin()));
    EXPECT_GE(context.max_nodes, 1);
    EXPECT_GE(context.max_depth, 0);
    EXPECT_EQ(context.hidden.defined(), context.tokens.size() > 1);
    if (context.hidden.defined()) {
      const auto before_root = context.tokens.first(context.tokens.size() - 1);
      EXPECT_TRUE(at::equal(context.hidden, at::tensor(toy_state(before_root))));
    }
    CandidateTree tree = root_only(context.tokens.back());
    build_(context, random, tree);
    if (tree.num_verify == 1) tree.num_verify = tree.size();
    return tree;
  }

  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    EXPECT_EQ(output.logits.size(0), tree.size());
    for (const int32_t node : accepted.path) EXPECT_LT(node, tree.num_verify);
  }

 private:
  Build build_;
  std::vector<TokenId> prompt_;
};

/// A chain of what the continuation says, changed by shift tokens (0: all right, 1: all wrong).
inline void add_chain(const DraftContext& context, const Continuation& next, int32_t length,
                      int32_t shift, CandidateTree& tree) {
  std::vector<TokenId> text(context.tokens.begin(), context.tokens.end());
  int32_t node = 0;
  for (int32_t i = 0; i < std::min(length, context.max_nodes - 1); ++i) {
    const TokenId right = next(text);
    text.push_back(right);
    node = add_node(tree, node, (right + shift) % static_cast<TokenId>(kToyVocab));
  }
}

/// Drafters by name; each is given how the target goes on under the rule at hand.
inline std::map<std::string, DrafterFactory> toy_drafters(const Continuation& next) {
  const auto make = [](ToyDrafter::Build build) -> DrafterFactory {
    return [build] { return std::make_unique<ToyDrafter>(build); };
  };
  std::map<std::string, DrafterFactory> drafters;
  drafters["none"] = [] { return std::make_unique<NoneDrafter>(); };
  drafters["perfect chain"] = make([next](const DraftContext& c, const Random&, CandidateTree& t) {
    add_chain(c, next, 5, 0, t);
  });
  drafters["wrong chain"] = make([next](const DraftContext& c, const Random&, CandidateTree& t) {
    add_chain(c, next, 3, 1, t);
  });
  // The right token twice among the root's children; only the second one goes on.
  drafters["duplicate siblings"] =
      make([next](const DraftContext& c, const Random&, CandidateTree& t) {
        if (c.max_nodes < 6) return;
        std::vector<TokenId> text(c.tokens.begin(), c.tokens.end());
        const TokenId right = next(text);
        add_node(t, 0, (right + 1) % 7);
        add_node(t, 0, right);
        const int32_t second = add_node(t, 0, right);
        text.push_back(right);
        add_node(t, second, next(text));
        add_node(t, 1, next(text));
      });
  // One candidate may be accepted, the perfect nodes behind it only feed the drafter.
  drafters["draft-only nodes"] =
      make([next](const DraftContext& c, const Random&, CandidateTree& t) {
        if (c.max_nodes < 5) return;
        const TokenId right = next(c.tokens);
        add_node(t, 0, right);
        t.num_verify = 2;
        std::vector<TokenId> text(c.tokens.begin(), c.tokens.end());
        text.push_back(right);
        add_node(t, 1, next(text));
        add_node(t, 0, next(text));
      });
  // A random tree of as many nodes as allowed, deeper than the text may still become.
  drafters["full tree"] = make([](const DraftContext& c, const Random& r, CandidateTree& t) {
    const auto position = static_cast<int64_t>(c.tokens.size());
    while (t.size() < c.max_nodes) {
      const auto i = static_cast<uint64_t>(t.size());
      const double parent = r.uniform(RandomUse::Draft, position, 2 * i);
      const double token = r.uniform(RandomUse::Draft, position, 2 * i + 1);
      add_node(t, static_cast<int32_t>(parent * static_cast<double>(i)),
               static_cast<TokenId>(token * static_cast<double>(kToyVocab)));
    }
  });
  return drafters;
}

/// A finished sequence, and what the target held of it.
struct Decoded {
  std::vector<TokenId> text;
  DecodeStats stats;
  std::vector<TokenId> cached;  // committed rows at the end
};

/// A request that appends to text, checking that every token came with the row that predicted it.
inline DecodeRequest toy_request(const std::vector<TokenId>& prompt, const DecodeLimits& limits,
                                 uint64_t seed, std::vector<TokenId>& text) {
  DecodeRequest request{prompt, limits, Random(seed), {}};
  request.emit = [prompt, &text](const EmittedToken& token) {
    std::vector<TokenId> context = prompt;
    context.insert(context.end(), text.begin(), text.end());
    EXPECT_TRUE(at::equal(token.output->logits[token.row], at::tensor(toy_logits(context))));
    EXPECT_TRUE(at::equal(token.output->hidden[token.row], at::tensor(toy_state(context))));
    text.push_back(token.id);
    return true;
  };
  return request;
}

inline Decoded decode_toy(const AcceptanceRule& rule, const DrafterFactory& drafter,
                          const std::vector<TokenId>& prompt, const DecodeLimits& limits,
                          uint64_t seed = 1, int64_t max_rows = 1000) {
  ToyTarget target(1, max_rows);
  Decoded out;
  out.stats = decode_one(target, rule, drafter, toy_request(prompt, limits, seed, out.text)).stats;
  EXPECT_EQ(target.closed.size(), 1U);
  out.cached = target.closed.at(0);
  return out;
}

}  // namespace medusa::fixtures
