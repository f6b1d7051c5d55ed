// Which drafter decodes where nobody names one, and whether its files are there: asked before the
// model is loaded, which may take minutes.
#pragma once

#include <functional>
#include <string>

#include "infer/infer_config.h"
#include "tools/run/run_config.h"

namespace medusa {

using SameRunCommand = std::function<std::string(const std::string& name)>;

/// The drafter that the settings name. Else, where they name heads or a tree or the run has both,
/// the one that calibration found fastest with the tree, or with_heads where it tried none; and
/// elsewhere without_heads, with a line on stderr that says so.
/// @param without_heads  prompt lookup where many answers follow, since it first measures what rows
///                       cost; plain decoding for one.
/// @param command        gives the line that calls a command for the same run.
/// @throws UserError     the tree is damaged, or names a drafter that is none.
DrafterKind chosen_drafter(const RunConfig& config, DrafterKind with_heads,
                           DrafterKind without_heads, const SameRunCommand& command);

/// Takes the thresholds of typical acceptance that calibration chose for the tree, unless the
/// settings name some or the tree has none, with a line on stderr where they will judge.
/// @throws UserError  the tree is damaged.
void take_calibrated_thresholds(const RunConfig& config, InferConfig& infer);

/// Refuses heads that are not there or of another shape than the model, as far as headers tell.
/// @throws UserError  says which command makes them.
void check_heads(const RunConfig& config);

/// Refuses what load_drafting() would refuse after the model is loaded, as far as files and their
/// headers tell.
/// @param infer   names the drafter; config says where its parts lie.
/// @param shares  answers are kept for others.
/// @throws UserError  heads, tree, store or draft model are missing, damaged or of another shape
///                    than the model; says which command makes them.
void check_drafting(const RunConfig& config, const InferConfig& infer, bool shares = false);

/// How answers are decoded that follow each other (chat, serve): with `merge` where
/// chosen_drafter() finds heads, with prompt lookup elsewhere. check_drafting() of it has passed.
/// @param command as chosen_drafter()'s.
/// @param shares  answers are kept for others: who looks texts up looks into these, too.
/// @throws UserError  as InferConfig::validate() and check_drafting().
InferConfig conversation_decoding(const RunConfig& config, const SameRunCommand& command,
                                  bool shares = false);

}  // namespace medusa
