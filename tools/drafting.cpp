#include "tools/drafting.h"

#include "heads/heads_checkpoint.h"

namespace medusa {

LoadedDrafting load_drafting(const RunConfig& config, DrafterKind kind, const Llama& llama) {
  LoadedDrafting out;
  if (kind != DrafterKind::Medusa) return out;
  const ChoiceTree tree = read_choice_tree(config.tree_file());
  const LoadedHeads loaded = load_heads(config.heads_folder(), llama.weights());
  check_tree_fits(tree, loaded.heads.config.num_heads, loaded.manifest.fingerprint,
                  config.tree_file());
  out.guesser = std::make_unique<HeadGuesser>(loaded.heads, llama.weights(), tree.top_k);
  out.shape = std::make_unique<TreeShape>(tree.shape());
  out.heads = loaded.manifest.fingerprint;
  out.nodes = tree.num_nodes();
  return out;
}

}  // namespace medusa
