// Settings of the joint stage (Medusa-2, arXiv:2401.10774 §2.2.2): backbone and heads together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "train/optimizer_config.h"

namespace medusa {

/// What of the backbone is trained. Its embedding never is, nor its LM head but by an adapter.
enum class TrainedPart {
  Lora,        // low-rank adapters beside frozen matrices
  LastLayers,  // the last layers and the final norm
  AllLayers,   // all layers and the final norm
};

/// What holds the backbone to itself, L_0.
enum class BackboneLoss {
  Distill,  // KL(backbone as it was ‖ backbone now), over the whole vocabulary
  Text,     // cross-entropy of the text's next token
};

/// How the heads' weight grows over a run, s(step).
enum class Ramp { Sine, Linear, Constant };

template <>
struct EnumNames<TrainedPart> {
  static constexpr std::array<std::pair<const char*, TrainedPart>, 3> values{
      {{"lora", TrainedPart::Lora},
       {"last_layers", TrainedPart::LastLayers},
       {"all_layers", TrainedPart::AllLayers}}};
};
template <>
struct EnumNames<BackboneLoss> {
  static constexpr std::array<std::pair<const char*, BackboneLoss>, 2> values{
      {{"distill", BackboneLoss::Distill}, {"text", BackboneLoss::Text}}};
};
template <>
struct EnumNames<Ramp> {
  static constexpr std::array<std::pair<const char*, Ramp>, 3> values{
      {{"sine", Ramp::Sine}, {"linear", Ramp::Linear}, {"constant", Ramp::Constant}}};
};

/// Low-rank adapters (arXiv:2106.09685): W + alpha / rank · B A.
struct LoraConfig {
  int64_t rank = 16;
  double alpha = 16;
  double dropout = 0.05;
  std::vector<std::string> targets = {"q_proj",  "k_proj",    "v_proj",   "o_proj",
                                      "up_proj", "gate_proj", "down_proj"};

  template <typename Fields>
  void fields(Fields& f) {
    f("rank", rank, "inner size of an adapter", between<int64_t>(1, 1024));
    f("alpha", alpha, "an adapter weighs alpha / rank", greater_than(0.0));
    f("dropout", dropout, "share of an adapter's inputs left out; none in the LM head's",
      between(0.0, 0.9));
    f("targets", targets, "matrices with an adapter: q_proj, …, down_proj, lm_head");
  }
  /// @throws UserError  a target that no layer has, or the same one twice.
  void validate() const;
};

/// When a run has led too far from the backbone as it was.
struct GuardConfig {
  int64_t samples = 8;
  int64_t greedy_tokens = 32;
  double max_kl = 0.1;
  double max_perplexity_ratio = 1.1;
  double min_greedy_match = 0;

  template <typename Fields>
  void fields(Fields& f) {
    f("samples", samples, "validation samples that are watched; 0: none", at_least<int64_t>(0));
    f("greedy_tokens", greedy_tokens, "most tokens of a greedy answer to each of their prompts",
      at_least<int64_t>(1));
    f("max_kl", max_kl, "largest mean KL from the backbone as it was, nats", greater_than(0.0));
    f("max_perplexity_ratio", max_perplexity_ratio,
      "largest perplexity of their answers, over that of the backbone as it was",
      greater_than(0.0));
    f("min_greedy_match", min_greedy_match, "smallest share of greedy answers that stay the same",
      between(0.0, 1.0));
  }
  void validate() const {}
};

struct JointConfig {
  std::optional<std::string> heads;
  TrainedPart part = TrainedPart::Lora;
  int64_t last_layers = 4;
  LoraConfig lora;
  BackboneLoss backbone_loss = BackboneLoss::Distill;
  double heads_weight = 0.1;  // lambda_0
  Ramp ramp = Ramp::Sine;
  OptimizerConfig optimizer{.learning_rate = 1e-4, .warmup_steps = 20};  // of the backbone
  std::optional<int64_t> max_steps;
  int64_t batch_tokens = 1024;
  int64_t accumulate = 1;
  double head_rate_multiple = 4;
  int64_t chunk_positions = 128;
  ReportConfig reports{.report_every = 5, .checkpoint_every = 50};
  GuardConfig guard;

  template <typename Fields>
  void fields(Fields& f) {
    // What these heads hold decides, not where they are.
    f("heads", heads, "folder of the heads to begin with; null: those of the stage before")
        .cosmetic();
    f("part", part, "what of the backbone is trained");
    f("last_layers", last_layers, "how many, with part: last_layers", at_least<int64_t>(1))
        .decides_if(part == TrainedPart::LastLayers);
    f.section("lora", lora, "adapters, with part: lora");
    f("backbone_loss", backbone_loss, "what holds the backbone: itself as it was, or the text");
    f("heads_weight", heads_weight, "what the heads' loss weighs beside the backbone's, lambda_0",
      greater_than(0.0));
    f("ramp", ramp, "how that weight grows from 0 over the run; constant: it does not");
    optimizer.fields(f);
    f("max_steps", max_steps, "most optimizer steps; null: all of them", at_least<int64_t>(1));
    f("batch_tokens", batch_tokens, "tokens of a batch of whole samples, about",
      at_least<int64_t>(1));
    f("accumulate", accumulate, "batches whose gradients make one step", at_least<int64_t>(1));
    f("head_rate_multiple", head_rate_multiple,
      "step size of the heads, in learning rates, which are the backbone's", greater_than(0.0));
    f("chunk_positions", chunk_positions, "positions whose logits are in memory at one time",
      at_least<int64_t>(1));
    reports.fields(f);
    f.section("guard", guard,
              "looks before each checkpoint; stops a run that changes the backbone too much");
  }
  void validate() const {}
};

}  // namespace medusa
