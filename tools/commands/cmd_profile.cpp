// medusa profile: one decoding step in its parts, by rows, beside what the machine can do.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/replace_folder.h"
#include "heads/heads_checkpoint.h"
#include "infer/factory.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/profile/profile.h"
#include "tools/profile/profile_result.h"
#include "tools/profile/roofline.h"
#include "tools/report/report.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

constexpr int64_t kProfileContext = 512;  // tokens before a step
constexpr int64_t kTopK = 10;             // drafts of a head that trees are made of

struct ProfileOptions {
  std::vector<int32_t> rows{1, 2, 4, 8, 16, 32, 64};
  std::vector<int64_t> contexts;
  int64_t repeats = 16;
  std::string out;
};

template <typename T>
std::vector<T> ascending(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// @throws UserError  a step does not fit into the run's context.
ProfilePlan make_plan(const ProfileOptions& options, const Model& model) {
  ProfilePlan plan{ascending(options.rows), ascending(options.contexts), options.repeats};
  const int64_t room = model.context - plan.rows.back();
  if (plan.contexts.empty()) plan.contexts = {std::min(kProfileContext, room)};
  if (plan.contexts.back() > room || room < 1)
    throw UserError(fmt::format(
        "--contexts: a step of {} rows behind {} tokens, expected at most the {} tokens of the "
        "context; lower --rows or --contexts, or raise backbone.context",
        plan.rows.back(), plan.contexts.back(), model.context));
  return plan;
}

/// The run's heads, if they are trained.
std::unique_ptr<HeadsRunner> run_heads(const RunConfig& config, const Llama& llama,
                                       int32_t most_rows) {
  if (!folder_is_done(config.heads_folder())) {
    if (config.generate.heads) check_heads(config);  // somebody named them
    return nullptr;
  }
  const LoadedHeads loaded = load_heads(config.heads_folder(), llama.weights());
  // One head alone gives as many paths as it has drafts.
  const int64_t top_k = loaded.heads.config.num_heads > 1 ? kTopK : most_rows;
  return std::make_unique<HeadsRunner>(loaded.heads, llama.weights(), top_k, llama.execution());
}

Roofline roofline_of(const Llama& llama) {
  return measure_roofline(llama.device(), llama.dtype(), num_threads(llama), llama.execution(),
                          device_wait(llama.device()));
}

void write_profile(const std::filesystem::path& folder, const Profile& profile) {
  make_folder(folder);
  write_file(folder / "profile.json", json_text(profile_json(profile), 1) + "\n");
  write_file(folder / "profile.html", profile_page(profile, frame_of(folder, "profile.html")));
  refresh_run_report(folder);
}

void run_profile(const CommonOptions& common, const ProfileOptions& options) {
  const RunConfig config = read_run_config(common);
  const std::filesystem::path folder = options.out.empty() ? config.run : options.out;
  check_output_file(folder / "profile.json", ArtifactKind::Profile);
  check_output_file(folder / "profile.html", ArtifactKind::Page);
  const Model model = open_model(config.backbone);
  Llama& llama = *model.llama;
  const ProfilePlan plan = make_plan(options, model);
  const auto heads = run_heads(config, llama, plan.rows.back());
  const Roofline roofline = roofline_of(llama);
  Profile profile = profile_steps(llama, plan, heads.get(), make_rule(config.generate.infer));
  profile.roofline = roofline;
  if (profile.complete) write_profile(folder, profile);
  if (common.json)
    print_json(profile_json(profile));
  else
    print_text("{}", profile_table(profile));
  if (!profile.complete)
    throw Interrupted(fmt::format("profile: interrupted, nothing is written to {}; run it again",
                                  folder.string()));
  if (!common.json)
    print_text("page: {}        numbers: {}\n", (folder / "profile.html").string(),
               (folder / "profile.json").string());
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .summary = "time the parts of a decoding step beside what the machine can do",
          .sections = {"backbone", "generate"},
          .settings = {"--heads", "--rule", "--temperature", "--device", "--dtype", "--threads",
                       "--context"},
          .examples = {"profile model.gguf", "profile model.gguf --rows 1,8,64 --dtype stored",
                       "profile model.gguf --rule typical --temperature 0.7"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ProfileOptions>();
            added.group("Steps");
            added.list("--rows", options->rows, "N,N,…", "rows of the steps (1,2,4,8,16,32,64)",
                       between(1, 64));
            added.list("--contexts", options->contexts, "N,N,…",
                       "tokens before a step (512, or as many as fit)", at_least<int64_t>(1));
            added.value("--repeat", options->repeats, "N", "time every step so many times (16)",
                        at_least<int64_t>(1));
            added.group("Output");
            added.value("--out", options->out, "FOLDER",
                        "of profile.json and profile.html; else the run's");
            return [options, &common] { run_profile(common, *options); };
          }};
}

}  // namespace medusa
