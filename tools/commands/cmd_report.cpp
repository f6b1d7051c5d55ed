// medusa report: writes the run's page of pictures anew.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/report/report.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

/// A page of nothing would lie in a folder that is no business of ours.
void check_run(const RunConfig& config) {
  const auto parts = {config.dataset_folder(), config.train_folder(), config.joint_folder(),
                      config.heads_folder(),   config.tree_file(),    config.compare_file()};
  const auto is_there = [](const std::filesystem::path& part) {
    return std::filesystem::exists(std::filesystem::symlink_status(part));
  };
  if (std::filesystem::is_directory(config.run) &&
      std::none_of(parts.begin(), parts.end(), is_there))
    throw UserError(fmt::format(
        "{}: holds nothing of a run, expected a dataset, training, heads, a tree or a comparison; "
        "name the run's folder with --run, or begin one with medusa run",
        config.run));
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "write the run's page of curves, tree and numbers",
          .sections = {"backbone"},
          .says_run = false,
          .examples = {"report model.gguf", "report --config my.yaml"},
          .attach = [](Options&, const CommonOptions& options) {
            return [&options] {
              const RunConfig config = read_run_config(options);
              check_run(config);
              check_output_file(config.report_file(), ArtifactKind::Page);
              write_run_report(config.run, config.report_file());
              const std::string file = config.report_file().string();
              if (options.json)
                print_json(nlohmann::json{{"report", file}});
              else
                print_text("report: {}\n", file);
            };
          }};
}

}  // namespace medusa
