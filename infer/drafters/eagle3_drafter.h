// Published EAGLE-3 drafts: one layer over the target's features that runs ahead of it, its tree
// grown as in EAGLE-2. Papers: EAGLE-3 (arXiv:2503.01840), EAGLE-2 (arXiv:2406.16858) §4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "heads/eagle3/eagle3_model.h"
#include "infer/draft_models/best_paths.h"
#include "infer/drafter.h"

namespace medusa {

struct Eagle3Config {
  std::optional<std::string> draft;
  int32_t nodes = 32;
  int32_t depth = 6;
  int32_t beam = 8;

  template <typename Fields>
  void fields(Fields& f) {
    f("draft", draft, "folder that medusa import --format eagle3 wrote; null: the run's own");
    f("nodes", nodes, "nodes of the tree, the root included", between(2, 64));
    f("depth", depth, "levels below the root, each a pass of the draft", between(1, 16));
    f("beam", beam, "nodes of a level that get children, and children of each", between(1, 32));
  }
  void validate() const {}
};

/// Rows that a tree of any of these settings has in the draft's cache, at most.
inline constexpr int64_t kEagle3MostRows = 16 * 32;

/// In each level the most probable paths run, and of all that they propose the most probable nodes
/// stay. Tokens are chosen outright, as EAGLE does, so every rule works with them. The draft's own
/// rows of the text are made from the target's features alone, whoever proposed the tokens.
class Eagle3Drafter : public Drafter {
 public:
  /// @param model  kept by reference; must outlive this.
  Eagle3Drafter(Eagle3Model& model, const Eagle3Config& config)
      : model_(model), config_(config), text_(model) {}

  std::span<const int32_t> feature_layers() const override { return model_.feature_layers(); }
  void begin(std::span<const TokenId> prompt) override;
  void read_prompt(const at::Tensor& features) override;
  /// Only the root where there are no features yet (a prompt of one token).
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  /// The nodes that have run in this step, and what became of them.
  struct Grown {
    std::vector<TokenId> tokens;
    std::vector<int32_t> parents;
    at::Tensor states;  // [1 + n, H] the text's last one, then theirs
  };
  void catch_up();
  void add_children(std::span<const int32_t> nodes, const at::Tensor& states, BestPaths& paths);
  at::Tensor run(std::span<const int32_t> nodes, BestPaths& paths, Grown& grown);

  Eagle3Model& model_;
  Eagle3Config config_;
  Eagle3Text text_;
  std::vector<TokenId> prompt_;
  size_t prompt_read_ = 0;            // tokens whose features came
  std::vector<at::Tensor> features_;  // of [n, F, H_t]: of positions that have not run
  std::vector<TokenId> tokens_;       // behind each of them
  at::Tensor state_;                  // [1, H] of the last position; undefined before the first
};

}  // namespace medusa
