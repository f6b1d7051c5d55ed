// medusa inspect: says what a file or folder holds.
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/inspect/inspect.h"

namespace medusa {

Command inspect_command() {
  return {.name = "inspect",
          .summary = "say what an artefact, a model file or a run folder holds",
          .examples = {"inspect model.gguf", "inspect runs/my"},
          .attach = [](Options& added, const CommonOptions& options) -> std::function<void()> {
            const auto path = std::make_shared<std::string>();
            added.positional("PATH", *path, "file or folder", true);
            return [path, &options] {
              const nlohmann::ordered_json found = inspect(*path);
              if (options.json)
                print_json(found);
              else
                print_text("{}", inspection_text(found));
            };
          }};
}

}  // namespace medusa
