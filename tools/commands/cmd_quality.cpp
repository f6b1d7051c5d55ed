// medusa quality: how far each dtype's predictions are from float32's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/measure/dtype_quality.h"

namespace medusa {
namespace {

struct QualityOptions {
  std::string questions;
  std::vector<std::string> dtypes{"bfloat16", "int8", "stored"};
  int64_t limit = 0;
};

DtypeKind parse_dtype(const std::string& name) {
  for (const auto& [known, dtype] : EnumNames<DtypeKind>::values)
    if (name == known) return dtype;
  throw UserError(fmt::format("--dtypes: unknown dtype '{}', expected some of {}; correct the name",
                              name, enum_choices<DtypeKind>()));
}

void run_quality(const CommonOptions& common, const QualityOptions& options) {
  std::vector<DtypeKind> dtypes;
  for (const std::string& name : options.dtypes) dtypes.push_back(parse_dtype(name));
  const RunConfig config = read_run_config(common);
  const DtypeComparison found = compare_dtypes(config, dtypes, options.questions, options.limit);
  if (common.json)
    print_json(dtype_quality_json(found));
  else
    print_text("{}", dtype_quality_text(found));
}

}  // namespace

Command quality_command() {
  return {"quality",
          "tell how far each dtype's predictions are from float32's",
          {"backbone", "generate"},
          [](CLI::App& app, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<QualityOptions>();
            app.add_option("--questions", options->questions,
                           "prompts, .jsonl; of several turns the first")
                ->required();
            app.add_option("--dtypes", options->dtypes,
                           "with commas between them, some of " + enum_choices<DtypeKind>() +
                               "; default: bfloat16,int8,stored")
                ->delimiter(',');
            app.add_option("--limit", options->limit, "only the first so many questions")
                ->check(CLI::PositiveNumber);
            return [options, &common] { run_quality(common, *options); };
          }};
}

}  // namespace medusa
