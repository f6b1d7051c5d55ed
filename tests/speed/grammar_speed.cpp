// What a grammar costs a step: masks of the rows of a tree, and keeping the tree inside it. Not a
// test: built and run by hand.
//
//   grammar_speed MODEL [NODES]
//
// A text is written by chance inside a JSON schema. At each of its tokens all rows of a tree of
// NODES (16) nodes that the grammar allows are masked, which is the most a rule may ask for. Prints
// medians and 95th percentiles.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/elapsed.h"
#include "base/error.h"
#include "base/random.h"
#include "data/tokenizer/tokenizer.h"
#include "infer/grammar/grammar_drafter.h"
#include "infer/grammar/grammar_processor.h"

namespace medusa {
namespace {

constexpr const char* kSchema = R"({"type": "object", "properties": {
  "name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
  "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
   "required": ["street", "city"]}}, "required": ["name", "age", "tags", "address"]})";

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) { return 1e6 * seconds_since(start); }

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  fmt::print("{:<34} median {:8.1f} us   p95 {:8.1f} us   ({} samples)\n", what, us[us.size() / 2],
             us[us.size() * 95 / 100], us.size());
}

/// The first token that a matcher allows from a place on.
/// @param u  the place, from 0 to 1 along the vocabulary.
TokenId draw_allowed(GrammarMatcher& matcher, std::vector<int32_t>& mask, double u) {
  matcher.fill_mask(mask);
  const auto size = static_cast<int64_t>(mask.size()) * 32,
             first = static_cast<int64_t>(u * static_cast<double>(size));
  for (int64_t i = 0; i < size; ++i) {
    const int64_t id = (first + i) % size;
    if ((static_cast<uint32_t>(mask[static_cast<size_t>(id / 32)]) >> (id % 32) & 1U) != 0)
      return static_cast<TokenId>(id);
  }
  return -1;
}

/// Proposes what it is told to.
class GivenDrafter : public Drafter {
 public:
  explicit GivenDrafter(const CandidateTree& tree) : tree_(tree) {}
  CandidateTree propose(const DraftContext&, const Random&) override { return tree_; }

 private:
  const CandidateTree& tree_;
};

int measure(const std::string& model, int32_t num_nodes) {
  const auto tokenizer = load_tokenizer(model);
  GrammarVocabulary vocabulary;
  for (TokenId id = 0; id < tokenizer->vocab_size(); ++id)
    vocabulary.bytes.push_back(tokenizer->is_special(id) ? std::string() : tokenizer->bytes(id));
  vocabulary.ends = {2};
  const auto compiler = make_grammar_compiler(vocabulary);
  const auto start = Clock::now();
  const auto grammar = compiler->compile({GrammarKind::JsonSchema, kSchema});
  fmt::print("compiled in {:.1f} ms\n", us_since(start) / 1000);

  std::vector<int32_t> mask((vocabulary.bytes.size() + 31) / 32);
  std::vector<float> row(vocabulary.bytes.size(), 1.0F);
  std::vector<double> masks, rows, kept, reads;
  int64_t drawn = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto walker = grammar->make_matcher();
    GrammarProcessor processor(grammar);
    CandidateTree tree;
    GrammarDrafter drafter(std::make_unique<GivenDrafter>(tree), DrafterKind::Merge, *grammar);
    std::vector<TokenId> text{0};
    processor.begin(text);
    drafter.begin(text);
    while (text.size() < 60) {
      grammar->begin_step();
      const auto u = [&] {
        return Random(seed).uniform(RandomUse::Shuffle, 0, static_cast<uint64_t>(drawn++));
      };
      // A path of half of the nodes, and a sibling beside each of its nodes.
      tree = root_only(text.back());
      std::vector<std::vector<TokenId>> paths{{}};
      std::vector<TokenId> path;
      int32_t parent = 0, steps = 0;
      while (tree.size() + 1 < num_nodes && !walker->has_ended()) {
        const TokenId next = draw_allowed(*walker, mask, u()),
                      beside = draw_allowed(*walker, mask, u());
        const auto add = [&](TokenId token) {
          tree.tokens.push_back(token);
          tree.parents.push_back(parent);
          paths.push_back(path);
          paths.back().push_back(token);
        };
        if (beside != next) add(beside);
        add(next);
        parent = tree.size() - 1;
        path.push_back(next);
        walker->accept(next);
        ++steps;
      }
      tree.num_verify = tree.size();
      if (steps > 0) walker->rollback(steps);
      double filling = 0;
      for (const auto& each : paths) {
        for (const TokenId token : each) walker->accept(token);
        if (!walker->has_ended()) {
          const auto before = Clock::now();
          walker->fill_mask(mask);
          filling += us_since(before);
        }
        if (!each.empty()) walker->rollback(static_cast<int32_t>(each.size()));
      }
      masks.push_back(filling);
      const auto before = Clock::now();
      for (const auto& each : paths) processor.process(each, row);
      rows.push_back(us_since(before));
      DraftContext context;
      context.tokens = text;
      context.max_depth = 16;
      context.max_nodes = 2 * num_nodes;  // room for a forced path
      const auto drafting = Clock::now();
      const CandidateTree inside = drafter.propose(context, Random(1));
      kept.push_back(us_since(drafting));
      if (inside.size() < tree.size())
        throw UserError("a node that the grammar allows was left out; this is a bug");
      const TokenId next = draw_allowed(*walker, mask, u());
      const auto reading = Clock::now();
      walker->accept(next);
      reads.push_back(us_since(reading));
      processor.take(next);
      text.push_back(next);
      if (walker->has_ended()) break;
    }
  }
  double beyond = 0;
  for (const double each : reads) beyond += std::max(0.0, each - 20);
  fmt::print("tokens take {:.2f} us beyond 20 on average\n",
             beyond / static_cast<double>(reads.size()));
  print("a token of the text read", std::move(reads));
  print(fmt::format("masks of {} nodes", num_nodes).c_str(), std::move(masks));
  print(fmt::format("{} rows masked", num_nodes).c_str(), std::move(rows));
  print(fmt::format("keeping {} nodes inside", num_nodes).c_str(), std::move(kept));
  return 0;
}

}  // namespace
}  // namespace medusa

int main(int argc, char** argv) {
  const int num_nodes = argc > 2 ? std::atoi(argv[2]) : 16;
  if (argc < 2 || num_nodes < 2) {
    fmt::print(stderr, "usage: grammar_speed MODEL [NODES]\n");
    return 2;
  }
  try {
    return medusa::measure(argv[1], num_nodes);
  } catch (const medusa::UserError& error) {
    fmt::print(stderr, "grammar_speed: {}\n", error.what());
    return 2;
  }
}
