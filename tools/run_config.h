// One YAML file -> the settings of all layers, and where a run keeps its artifacts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "data/dataset/state_rows.h"
#include "heads/heads_config.h"
#include "infer/infer_config.h"
#include "runtime/draft_files.h"
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

struct DistillSection {
  std::vector<std::string> prompts;
  int64_t self_prompts = 2000;
  SamplingConfig question_sampling{.temperature = 1.0, .top_k = 0, .top_p = 0.95};
  int64_t question_tokens = 64;
  SamplingConfig sampling{.temperature = 0.7, .top_k = 0, .top_p = 0.95};
  int32_t max_new_tokens = 256;
  int64_t max_answer_tokens = 0;
  int64_t batch = 32;
  int64_t shard_samples = 256;
  bool record_hidden = true;
  StateFormat states_dtype = StateFormat::Bfloat16;
  std::optional<double> states_budget_mb;

  template <typename Fields>
  void fields(Fields& f) {
    f("prompts", prompts,
      "files of prompts (.jsonl, ShareGPT .json; -: standard input); empty: the model writes its "
      "own questions");
    f("self_prompts", self_prompts, "questions the model writes itself when no file is given",
      at_least<int64_t>(1));
    f.section("question_sampling", question_sampling, "how those questions are sampled");
    f("question_tokens", question_tokens, "most tokens of such a question", at_least<int64_t>(4));
    sampling.fields(f);
    f("max_new_tokens", max_new_tokens, "most tokens of one answer", at_least(1));
    f("max_answer_tokens", max_answer_tokens,
      "about how many answer tokens the dataset should hold; 0: answer all prompts",
      at_least<int64_t>(0));
    f("batch", batch, "sequences generated at the same time", between<int64_t>(1, 1024));
    f("shard_samples", shard_samples, "samples of one HDF5 shard", at_least<int64_t>(1));
    f("record_hidden", record_hidden,
      "keep the backbone's states, so that training needs no backbone pass");
    f("states_dtype", states_dtype, "how they are kept; int8 takes half the room");
    f("states_budget_mb", states_budget_mb,
      "most megabytes (10^6 bytes) of states; training computes the others again; null: no limit",
      greater_than(0.0));
  }
  void validate() const {}
};

struct TrainSection {
  std::vector<StageKind> stages = {StageKind::Heads};
  std::vector<std::string> data;
  std::vector<double> data_weights;
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
    f.section("heads", heads, "what the heads look like");
    config.fields(f);
    f.section("joint", joint, "the joint stage: backbone and heads together (Medusa-2)");
  }
  /// @throws UserError  stages in an order that cannot work; not a weight for each dataset.
  void validate() const;
};

struct CalibrateSection {
  int64_t top_k = 10;
  int64_t max_nodes = 64;
  std::optional<int64_t> nodes;
  int64_t positions = 20000;
  int64_t context = 256;
  int64_t repeats = 15;
  double smoothing = 20;

  template <typename Fields>
  void fields(Fields& f) {
    f("top_k", top_k, "guesses kept per head", between<int64_t>(1, 64));
    f("max_nodes", max_nodes, "largest tree looked at, the root included", between<int64_t>(2, 64));
    f("nodes", nodes,
      "size of the tree, the root included; null: the one with the most tokens per second here",
      between<int64_t>(2, 64));
    f("positions", positions, "most validation positions counted", at_least<int64_t>(1));
    f("context", context, "tokens before the steps that are timed", at_least<int64_t>(1));
    f("repeats", repeats, "timed steps of each size", at_least<int64_t>(3));
    f("smoothing", smoothing,
      "positions' worth of belief in the product of the heads' own accuracies", at_least(0.0));
  }
  void validate() const {}
};

struct GenerateSection {
  InferConfig infer;
  std::vector<std::string> stop;
  std::optional<std::string> heads;
  std::optional<std::string> tree;
  bool names_drafter = false;  // not a setting: somebody chose the drafter, it is no default

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
  /// Of one of several processes that distil together.
  std::filesystem::path dataset_part_folder(int64_t index, int64_t count) const;
  std::filesystem::path train_folder() const { return std::filesystem::path(run) / "train"; }
  /// Checkpoint and metrics of the draft model's training.
  std::filesystem::path draft_train_folder() const {
    return std::filesystem::path(run) / "draft-train";
  }
  std::filesystem::path joint_folder() const { return std::filesystem::path(run) / "joint"; }
  std::filesystem::path joint_model_folder() const { return joint_folder() / "model"; }
  std::filesystem::path joint_heads_folder() const { return joint_folder() / "heads"; }
  std::filesystem::path heads_folder() const;
  std::filesystem::path tree_file() const;
  std::filesystem::path store_file() const;
  /// The draft model that decoding loads: the one that is named, else the run's own.
  std::filesystem::path draft_folder() const;
  /// What make-draft writes; never a model that somebody named.
  std::filesystem::path made_draft_folder() const { return std::filesystem::path(run) / "draft"; }
  std::filesystem::path layers_file() const { return std::filesystem::path(run) / "layers.json"; }
  /// Where each drafter's parts lie.
  DraftFiles draft_files() const;
  std::filesystem::path compare_file() const { return std::filesystem::path(run) / "compare.json"; }
  std::filesystem::path report_file() const { return std::filesystem::path(run) / "report.html"; }
};

}  // namespace medusa
