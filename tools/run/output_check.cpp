#include "tools/run/output_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/replace_folder.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

FolderLock lock_run(const RunConfig& config, const std::string& command) {
  FolderLock lock(config.run, command);
  for (const auto& file : {config.questions_file(), config.tree_file(), config.store_file(),
                           config.layers_file(), config.compare_file(), config.report_file()})
    remove_leftovers(file);
  for (const auto& folder :
       {config.dataset_folder(), config.heads_folder(), config.joint_model_folder(),
        config.joint_heads_folder(), config.made_draft_folder()})
    finish_replacement(folder);
  return lock;
}

namespace fs = std::filesystem;

namespace {

/// The folder of what will be written, or the one in which it will be made.
void check_writable(const fs::path& output) {
  fs::path folder = fs::absolute(output).parent_path();
  while (!fs::exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  throw UserError(
      fmt::format("{}: {} cannot be written to ({}), expected a folder that can; name another "
                  "output, or check the folder's permissions",
                  output.string(), folder.string(), std::strerror(errno)));
}

}  // namespace

void check_output_file(const fs::path& file, std::string_view what,
                       const std::function<bool(const fs::path&)>& is_one) {
  if (is_written_into(file)) return;
  check_writable(follow_links(file));
  if (!fs::exists(file) || fs::file_size(file) == 0 || is_one(file)) return;
  throw UserError(fmt::format(
      "{}: holds something else, expected {}, an empty file or nothing there, since it would be "
      "replaced; move it away or name another output",
      file.string(), what));
}

void check_output_file(const fs::path& file, ArtifactKind kind) {
  check_output_file(file, fmt::format("a file of the kind '{}'", kind_name(kind)),
                    [kind](const fs::path& found) { return find_kind(found) == kind; });
}

namespace {

/// Whether a tree was measured on these heads; of what is damaged that is not known.
bool is_tree_of(const fs::path& tree, const fs::path& heads) {
  if (!fs::exists(tree) || !folder_is_done(heads)) return false;
  try {
    return read_choice_tree(tree).heads == read_heads_manifest(heads).fingerprint;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

void check_output_tree(const RunConfig& config) {
  const fs::path tree = config.tree_file(), own = config.own_heads_folder();
  check_output_file(tree, ArtifactKind::Tree);
  if (config.generate.tree ||
      fs::weakly_canonical(config.heads_folder()) == fs::weakly_canonical(own))
    return;
  if (!is_tree_of(tree, own)) return;
  throw UserError(fmt::format(
      "{}: measured on the heads in {}, found --heads {}, expected a tree of these or nothing "
      "there, since it would be replaced; name another place for theirs with --tree FILE",
      tree.string(), own.string(), config.heads_folder().string()));
}

void check_new_folder(const fs::path& folder, std::string_view option) {
  if (fs::exists(folder))
    throw UserError(
        fmt::format("{}: exists already, expected a new folder; remove it or name another with {}",
                    folder.string(), option));
  check_writable(follow_links(folder));
}

void check_output_folder(const fs::path& folder, ArtifactKind kind) {
  check_replaceable(folder);
  check_writable(follow_links(folder));
  if (!folder_is_done(folder) || marked_folder(folder) == kind) return;
  throw UserError(
      fmt::format("{}: holds something else, expected a folder of the kind '{}', an empty one or "
                  "nothing there, since it would be replaced; move it away or name another output",
                  folder.string(), kind_name(kind)));
}

}  // namespace medusa
