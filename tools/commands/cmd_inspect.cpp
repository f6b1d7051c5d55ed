// medusa inspect: says what a file or folder holds.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/inspection_text.h"

namespace medusa {

Command inspect_command() {
  return {"inspect",
          "say what an artefact, a model file or a run folder holds",
          {},
          [](CLI::App& app, const CommonOptions& options) -> std::function<void()> {
            const auto path = std::make_shared<std::string>();
            app.add_option("PATH", *path, "file or folder")->required();
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
