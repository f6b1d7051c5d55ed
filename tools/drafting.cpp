#include "tools/drafting.h"

#include <optional>

#include "heads/heads_checkpoint.h"

namespace medusa {

LoadedDrafting load_drafting(const RunConfig& config, const InferConfig& infer,
                             const Llama& llama) {
  LoadedDrafting out;
  const DraftNeeds needs = needs_of(infer);
  std::optional<ChoiceTree> tree;
  if (needs.tree) tree = read_choice_tree(config.tree_file());
  if (!needs.heads) return out;
  const LoadedHeads loaded = load_heads(config.heads_folder(), llama.weights());
  out.heads = loaded.manifest.fingerprint;
  int64_t top_k = 1;
  if (tree) {
    check_tree_fits(*tree, loaded.heads.config.num_heads, out.heads, config.tree_file());
    top_k = tree->top_k;
    out.shape = std::make_unique<TreeShape>(tree->shape());
    out.nodes = tree->num_nodes();
  }
  out.guesser = std::make_unique<HeadGuesser>(loaded.heads, llama.weights(), top_k);
  return out;
}

}  // namespace medusa
