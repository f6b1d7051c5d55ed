// medusa report: writes the run's page of pictures anew.

#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/report/report.h"
#include "tools/run/output_check.h"

namespace medusa {

Command report_command() {
  return {.name = "report",
          .summary = "write the run's page of curves, tree and numbers",
          .sections = {"backbone"},
          .says_run = false,
          .examples = {"report model.gguf", "report --config my.yaml"},
          .attach = [](Options&, const CommonOptions& options) {
            return [&options] {
              const RunConfig config = read_run_config(options);
              check_output_file(config.report_file(), ArtifactKind::Page);
              write_run_report(config.run, config.report_file());
              print_text("report: {}\n", config.report_file().string());
            };
          }};
}

}  // namespace medusa
