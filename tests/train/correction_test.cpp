// Training of heads that the token drafted before corrects.
#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "base/file.h"
#include "heads/heads_runner.h"
#include "tests/base/error_text.h"
#include "tests/train/child_run.h"
#include "tests/train/tiny_run.h"
#include "train/head_trainer.h"
#include "train/trainer.h"

namespace medusa {
namespace {

std::vector<nlohmann::json> reports(const TinyRun& run, const std::string& name) {
  return reports_in(run.metrics(name), "train");
}

std::vector<double> losses(const TinyRun& run, const std::string& name) {
  std::vector<double> values;
  for (const auto& report : reports(run, name)) values.push_back(report["loss_nats"]);
  return values;
}

std::string heads_bytes(const TinyRun& run, const std::string& name) {
  return read_file(run.folder.path() / name / "heads/heads.safetensors");
}

/// Text in which four tokens in five follow from the token before: what head 1 should draft depends
/// on head 0's draft, which it does not know without a correction.
TEST(Correction, LearnsWhatFollowsTheTokenBefore) {
  TinyRun run;
  run.config.optimizer.epochs = 20;
  run.heads.input = HeadInput::Hidden;  // knows neither the root nor what follows it
  const std::pair<LabelKind, HeadOutput> kinds[] = {{LabelKind::Hard, HeadOutput::Shared},
                                                    {LabelKind::Hard, HeadOutput::TruncatedOwn},
                                                    {LabelKind::Soft, HeadOutput::TruncatedShared}};
  for (const auto& [labels, output] : kinds) {
    const std::string name = enum_name(output);
    SCOPED_TRACE(name);
    run.config.labels = labels;
    run.heads.output = output;
    run.heads.correction_rank = 0;
    const TrainResult without = run.train(name);
    run.heads.correction_rank = 32;
    const TrainResult with = run.train(name + "32");
    // The text judges, and the tiny backbone's distributions know nothing of its rule.
    if (labels == LabelKind::Hard) {
      EXPECT_LT(with.validation[1].loss, without.validation[1].loss - 0.5);
      EXPECT_GT(with.validation[1].top_1, without.validation[1].top_1 + 0.2);
    }
    const double after = reports(run, name + "32").back()["head_loss_nats"][1];
    EXPECT_LT(after, reports(run, name).back()["head_loss_nats"][1].get<double>());
    const MedusaHeads made =
        load_heads(run.folder.path() / (name + "32") / "heads", run.backbone).heads;
    const MedusaHeads first = make_heads(run.heads, run.backbone, made.kept_tokens, 1);
    EXPECT_GT((made.correction->table - first.correction->table).abs().max().item<float>(), 1e-3)
        << "W is trained, too";
  }
}

TEST(Correction, HeadsMayBeginWithEarlierOnesThatAreNotCorrected) {
  TinyRun run;
  run.config.labels = LabelKind::Hard;
  run.config.optimizer.epochs = 15;
  run.train("plain");
  const DatasetReader dataset = run.open_data();
  const LoadedHeads earlier = load_heads(run.folder.path() / "plain/heads", run.backbone);
  HeadsConfig config = run.heads;
  config.correction_rank = 32;
  const auto inputs = [&](const std::string& name) {
    TrainInputs out{dataset,
                    run.backbone,
                    nullptr,
                    run.folder.path() / name / "heads",
                    run.folder.path() / name / "train",
                    ""};
    out.earlier = &earlier;
    return out;
  };
  const MedusaHeads begun = first_heads(run.config, config, inputs("a"));
  EXPECT_EQ(begun.kept_tokens, earlier.heads.kept_tokens);
  HeadsRunner before(earlier.heads, run.backbone, 10), after(begun, run.backbone, 10);
  const at::Tensor hidden = at::randn({6, 64});
  const std::vector<TokenId> text{3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(after.draft(hidden, text).tokens, before.draft(hidden, text).tokens);
  EXPECT_EQ(after.draft(hidden, text).log_probs, before.draft(hidden, text).log_probs);
  EXPECT_NE(begun.blocks[0].weight.data_ptr(), earlier.heads.blocks[0].weight.data_ptr());

  EXPECT_TRUE(train_heads(run.config, config, inputs("a")).complete);
  const double ends = losses(run, "plain").back(), begins = losses(run, "a").front();
  EXPECT_LT(begins, ends + 0.3) << "it goes on where the others ended";
  EXPECT_LT(begins, losses(run, "plain").front() - 0.3);
  run.heads = config;
  const std::string refusal = fixtures::error_text(run.folder, [&] { run.train("a"); });
  EXPECT_NE(refusal.find("the checkpoint was made with the heads to begin with sha256:"),
            std::string::npos)
      << "another training cannot go on there";
  EXPECT_NE(refusal.find("this run has no heads to begin with"), std::string::npos) << refusal;
  config.layers_per_head = 2;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { train_heads(run.config, config, inputs("b")); }),
            "train: the heads of 'begin_with' have train.heads.layers_per_head 1, these heads have "
            "2, expected the same, but for a correction that the earlier ones lack; set it to 1, "
            "or leave 'begin_with' out");
  config = run.heads;
  const LoadedHeads corrected = load_heads(run.folder.path() / "a/heads", run.backbone);
  TrainInputs other = inputs("b");
  other.earlier = &corrected;
  EXPECT_TRUE(at::equal(first_heads(run.config, config, other).correction->factors[0],
                        corrected.heads.correction->factors[0]));
  config.correction_rank = 64;
  EXPECT_NE(fixtures::error_text(run.folder, [&] { train_heads(run.config, config, other); })
                .find("have train.heads.correction_rank 32, these heads have 64"),
            std::string::npos);
}

TEST(Correction, ARunOfCorrectedHeadsThatWasKilledEndsWithTheSameHeads) {
  TinyRun run;
  run.config.optimizer.epochs = 30;
  run.config.reports.checkpoint_every = 3;
  run.heads.correction_rank = 32;
  run.train("whole");
  ASSERT_TRUE(WIFSIGNALED(train_and_signal([&] { return run.train("killed").complete; },
                                           run.metrics("killed"), 8, SIGKILL)));
  ASSERT_FALSE(std::filesystem::exists(run.folder.path() / "killed/heads"));
  EXPECT_TRUE(run.train("killed").complete);
  EXPECT_EQ(heads_bytes(run, "killed"), heads_bytes(run, "whole"));
  EXPECT_EQ(losses(run, "killed"), losses(run, "whole"));
}

}  // namespace
}  // namespace medusa
