// One YAML file -> the settings of all layers, and where a run keeps its artifacts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "heads/heads_config.h"
#include "infer/infer_config.h"
#include "runtime/calibrate_config.h"
#include "runtime/distill_config.h"
#include "runtime/draft_folder.h"
#include "runtime/model_options.h"
#include "train/draft_config.h"
#include "train/joint/joint_config.h"
#include "train/train_config.h"

namespace medusa {

/// The model, and how it is loaded.
struct BackboneSection : ModelOptions {
  std::string model;

  template <typename Fields>
  void fields(Fields& f) {
    f("model", model, "a .gguf file, or a folder with config.json and .safetensors");
    ModelOptions::fields(f);
  }
};

/// Distillation, and what it answers.
struct DistillSection : DistillConfig {
  std::vector<std::string> prompts;

  template <typename Fields>
  void fields(Fields& f) {
    f("prompts", prompts,
      "files of prompts (.jsonl, ShareGPT .json; -: standard input); empty: the model writes its "
      "own questions");
    DistillConfig::fields(f);
  }
};

struct TrainSection {
  std::vector<StageKind> stages = {StageKind::Heads};
  std::vector<std::string> data;
  std::vector<double> data_weights;
  std::optional<std::string> begin_with;
  HeadsConfig heads;
  TrainConfig config;
  JointConfig joint;

  template <typename Fields>
  void fields(Fields& f) {
    f("stages", stages, "[heads], [heads, joint] or [joint]");
    f("data", data, "folders of datasets to mix, of one model; []: the run's own");
    f("data_weights", data_weights,
      "how often an epoch visits the samples of each of them, 0.5: half of them in turns; []: once",
      between(0.001, 1000.0));
    f("begin_with", begin_with,
      "folder of heads to begin with, of the same settings but for a correction; null: untrained");
    f.section("heads", heads, "what the heads look like");
    config.fields(f);
    f.section("joint", joint, "the joint stage: backbone and heads together (Medusa-2)");
  }
  /// Whether the run has the stage.
  bool has(StageKind stage) const;
  /// @throws UserError  stages in an order that cannot work; not a weight for each dataset; heads
  ///                    to begin with for a stage that is not run.
  void validate() const;
};

struct CalibrateSection : CalibrateConfig {
  int64_t race_prompts = 12;
  int64_t typical_prompts = 24;

  template <typename Fields>
  void fields(Fields& f) {
    CalibrateConfig::fields(f);
    f("race_prompts", race_prompts,
      "validation prompts that each drafter decodes to find the fastest one; 0: none",
      at_least<int64_t>(0));
    f("typical_prompts", typical_prompts, "validation prompts that calibrate --typical decodes",
      at_least<int64_t>(1));
  }
};

struct GenerateSection {
  InferConfig infer;
  std::vector<std::string> stop;
  std::optional<std::string> heads;
  std::optional<std::string> tree;
  bool names_drafter = false;     // not a setting: somebody chose the drafter, it is no default
  bool names_thresholds = false;  // nor this: somebody chose epsilon or delta

  template <typename Fields>
  void fields(Fields& f) {
    infer.fields(f);
    f("stop", stop, "texts that end an answer; they are not shown");
    f("heads", heads, "folder of trained heads; null: the run's own");
    f("tree", tree, "tree file; null: the run's own");
  }
  /// @throws UserError  a rule that cannot work; an empty text to stop at.
  void validate() const;
};

struct RunConfig {
  std::string run;
  uint64_t seed = 1;
  BackboneSection backbone;
  DistillSection distill;
  TrainSection train;
  CalibrateSection calibrate;
  DraftTrainConfig draft;
  GenerateSection generate;

  template <typename Fields>
  void fields(Fields& f) {
    f("run", run, "folder of everything this run makes; empty: runs/ and the model's name");
    f("seed", seed, "of sampling, sample order and the heads' start");
    f.section("backbone", backbone, "the model");
    f.section("distill", distill, "training text, written by the model");
    f.section("train", train, "the heads and how they are trained");
    f.section("calibrate", calibrate, "the choice tree");
    f.section("draft", draft, "a draft model, cut from the backbone");
    f.section("generate", generate, "decoding");
  }
  /// @throws UserError  no model is named.
  void validate() const;

  std::filesystem::path questions_file() const {
    return std::filesystem::path(run) / "questions.jsonl";
  }
  std::filesystem::path dataset_folder() const { return std::filesystem::path(run) / "dataset"; }
  /// Of texts that were read, not written.
  std::filesystem::path text_dataset_folder() const {
    return std::filesystem::path(run) / "dataset-text";
  }
  /// Of one of several processes that distil together.
  std::filesystem::path dataset_part_folder(int64_t index, int64_t count) const;
  std::filesystem::path train_folder() const { return std::filesystem::path(run) / "train"; }
  /// Checkpoint and metrics of the draft model's training.
  std::filesystem::path draft_train_folder() const {
    return std::filesystem::path(run) / "draft-train";
  }
  std::filesystem::path joint_folder() const { return std::filesystem::path(run) / "joint"; }
  /// Checkpoint and metrics of the joint stage.
  std::filesystem::path joint_train_folder() const { return joint_folder() / "train"; }
  std::filesystem::path joint_model_folder() const { return joint_folder() / "model"; }
  std::filesystem::path joint_heads_folder() const { return joint_folder() / "heads"; }
  std::filesystem::path heads_folder() const;  // those that are named, else the run's own
  std::filesystem::path own_heads_folder() const;
  std::filesystem::path tree_file() const;
  std::filesystem::path store_file() const;
  /// The draft model that decoding loads: the one that is named, else the run's own.
  std::filesystem::path draft_folder() const;
  /// What make-draft writes; never a model that somebody named.
  std::filesystem::path made_draft_folder() const { return std::filesystem::path(run) / "draft"; }
  /// The EAGLE-3 draft that decoding loads and import writes.
  std::filesystem::path eagle3_folder() const;
  std::filesystem::path layers_file() const { return std::filesystem::path(run) / "layers.json"; }
  /// Where each drafter's parts lie.
  DraftFiles draft_files() const;
  std::filesystem::path compare_file() const { return std::filesystem::path(run) / "compare.json"; }
  std::filesystem::path report_file() const { return std::filesystem::path(run) / "report.html"; }
};

}  // namespace medusa
