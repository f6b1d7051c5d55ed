// The choice tree: which of the heads' drafts are tried together, as paths of draft ranks.
// Paper: Medusa (arXiv:2401.10774) §2.1.2 and §2.3.3. No LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace medusa {

/// Draft rank of head 0, of head 1, … from 0; [] is the root.
using RankPath = std::vector<int32_t>;

/// Node order: shorter paths first, then by ranks.
bool comes_before(const RankPath& a, const RankPath& b);

/// The tree as the decoder walks it. Node 0 is the root; N = paths + 1.
struct TreeShape {
  std::vector<int32_t> depths;                  // [N] 0 for the root
  std::vector<int32_t> parents;                 // [N] -1 for the root; parents[i] < i
  std::vector<int32_t> ranks;                   // [N] -1 for the root
  std::vector<std::vector<int32_t>> ancestors;  // [N] nodes each one sees: root first, itself last
  std::vector<std::vector<int32_t>> leaves;  // nodes of each path that ends at a leaf, root first
  std::vector<double> temperatures;          // as ChoiceTree's
  std::vector<double>
      accept_probs;  // [N] how often calibration found the path right; empty: unknown
};

/// A number with its 95 % interval.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// One tree size that calibration looked at.
struct TreeSizePoint {
  int32_t num_nodes = 0;       // N, the root included
  double tokens_per_step = 0;  // expected with the best tree of that size
  double step_ms = 0;          // measured time of a whole decoding step
};

/// How often a path of ranks was right.
struct PathCount {
  RankPath path;
  int64_t count = 0;
};

/// How fast a drafter decoded with the tree.
struct DrafterSpeed {
  std::string drafter;        // "none", "medusa", …
  Estimate speedup{1, 1, 1};  // over plain decoding of the same prompts, by turns
};

/// What typical acceptance gave and cost with one pair of thresholds (infer/rules/typical_rule.h).
struct TypicalPoint {
  double epsilon = 0, delta = 0;
  Estimate speedup;    // over plain sampling at the same temperature, by turns
  Estimate surprisal;  // nats per token of the text: mean -ln p under the model at the temperature
  double kl = 0;       // nats per token: KL(what the rule emits ‖ p), given the drafts
  double agreement = 0;  // share of tokens that plain sampling of the seed would have drawn there
};

/// Typical acceptance beside plain sampling.
struct TypicalSweep {
  double temperature = 0;
  Estimate plain_surprisal;          // of the texts of plain sampling
  std::vector<TypicalPoint> points;  // at least one
  size_t chosen = 0;  // index of the point that decodes where no thresholds are named
};

/// What a calibrated tree was chosen from; absent in imported trees.
struct TreeCalibration {
  std::string machine;        // what the steps were timed on
  int64_t context = 0;        // committed tokens while they were timed
  int64_t num_positions = 0;  // validation positions behind the counts
  int64_t num_answers = 0;    // answers they come from
  std::vector<std::vector<double>>
      head_accuracy;                   // [K][top_k] share of positions where it is right
  std::vector<PathCount> path_counts;  // of the paths considered, most probable first
  std::vector<TreeSizePoint> sizes;    // ascending
  std::vector<double>
      rows_ms{};  // entry N - 1: a step of N rows without drafting; empty: not timed
  std::vector<double>
      drafting_ms{};  // entry N - 1: the drafting of a tree of N nodes; empty: not timed by itself
  std::vector<DrafterSpeed> drafters{};  // that decoded with the tree; empty: none did
};

/// Paths are complete (each prefix is there too), distinct and in node order.
struct ChoiceTree {
  std::string source;           // project or paper of an imported tree; empty if calibrated here
  std::string heads;            // fingerprint of the heads it was measured on; empty: any heads
  std::string drafter;          // the fastest one with this tree; empty: not measured
  int32_t top_k = 0;            // drafts per head that it draws from; every rank is below
  std::vector<RankPath> paths;  // [N - 1], the root is not listed
  std::vector<double> temperatures;  // [K] of the heads' drafts (draft_temperature.h); empty: 1
  std::optional<Estimate> expected_tokens_per_step;
  std::optional<TreeCalibration> calibration;
  std::optional<TypicalSweep> typical{};

  int32_t num_nodes() const { return static_cast<int32_t>(paths.size()) + 1; }  // N
  int32_t depth() const;  // longest path: the heads it needs
  TreeShape shape() const;
};

/// Sorts the paths into node order.
/// @param where  stands first in messages.
/// @throws UserError  a path is empty, listed twice or without its prefix, or a rank is negative or
///                    not below top_k (0: one more than the largest rank).
ChoiceTree make_choice_tree(std::vector<RankPath> paths, int32_t top_k, const std::string& where);

/// Makes the tree with a place for each path: place(i) says where paths[i] stands.
ChoiceTree make_choice_tree(std::vector<RankPath> paths, int32_t top_k,
                            const std::function<std::string(size_t)>& place);

/// "[1, 0]", as tree files write it.
std::string path_text(const RankPath& path);

/// Reads a tree file.
/// @throws UserError  as make_choice_tree, with file:line; other format or version; unknown keys.
ChoiceTree read_choice_tree(const std::filesystem::path& file);

/// Refuses a tree that these heads cannot fill.
/// @throws UserError  deeper than num_heads, measured on heads of another fingerprint, or with
///                    temperatures for another number of heads.
void check_tree_fits(const ChoiceTree& tree, int64_t num_heads, const std::string& heads,
                     const std::filesystem::path& file);

/// @param comment  lines for the top of the file, without "# ".
/// @throws UserError  the file cannot be written.
void write_choice_tree(const std::filesystem::path& file, const ChoiceTree& tree,
                       const std::string& comment);

/// One tree of a JSON file: {"name": {"source": "...", "paths": [[0], [0, 1]]}}, {"name": [[0]]},
/// or a bare list of paths with an empty name. Medusa's Python tuple lists, [(0,), (0, 1)], are
/// read too.
/// @throws UserError  not readable as such, the name is not there, or as make_choice_tree.
ChoiceTree import_choice_tree(const std::filesystem::path& file, const std::string& name);

}  // namespace medusa
