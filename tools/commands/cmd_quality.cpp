// medusa quality: how far each dtype's predictions are from float32's.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output.h"
#include "data/prompts.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/measure/dtype_quality.h"

namespace medusa {
namespace {

struct QualityOptions {
  std::string questions;
  std::vector<DtypeKind> dtypes{DtypeKind::Bfloat16, DtypeKind::Int8, DtypeKind::Stored};
  int64_t limit = 0;
};

void run_quality(const CommonOptions& common, const QualityOptions& options) {
  const RunConfig config = read_run_config(common);
  const std::vector<Prompt> asked = read_questions(options.questions).prompts;
  note_later_turns(asked);
  const DtypeComparison found = compare_dtypes(config, options.dtypes, asked, options.limit);
  if (common.json)
    print_json(dtype_quality_json(found));
  else
    print_text("{}", dtype_quality_text(found));
}

}  // namespace

Command quality_command() {
  return {.name = "quality",
          .summary = "tell how far each dtype's predictions are from float32's",
          .sections = {"backbone", "generate"},
          .settings = {"--max-tokens", "--seed", "--device", "--threads", "--context"},
          .says_run = false,
          .examples = {"quality model.gguf --questions prompts.jsonl --dtypes bfloat16,stored"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<QualityOptions>();
            added.group("Questions");
            added.value("--questions", options->questions, "FILE",
                        "prompts, of several turns the first; -: standard input");
            added.require("--questions");
            added.value("--limit", options->limit, "N", "only the first N", at_least<int64_t>(1));
            added.group("Dtypes");
            added.list("--dtypes", options->dtypes, "NAME,…",
                       "some of " + enum_choices<DtypeKind>() + " (bfloat16,int8,stored)");
            return [options, &common] { run_quality(common, *options); };
          }};
}

}  // namespace medusa
