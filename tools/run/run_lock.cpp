#include "tools/run/run_lock.h"

#include "base/replace_folder.h"

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

}  // namespace medusa
