#include "train/resource_estimate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

#include "base/elapsed.h"
#include "train/finite_check.h"
#include "train/head_trainer.h"
#include "train/joint/joint_trainer.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMasterBytes = 16;   // float32: the number, its gradient, two moments
constexpr int64_t kSavedBytes = 12;    // without the gradient
constexpr double kStrangeShare = 0.6;  // of ln V: a backbone that wrote a text knows it better

int64_t bytes_of(const NamedTensors& tensors) {
  std::set<const void*> seen;  // a tied LM head lies where the embedding does
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors)
    if (seen.insert(tensor.const_data_ptr()).second) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t count_of(const NamedTensors& tensors) {
  int64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += tensor.numel();
  return count;
}

/// A checkpoint is written beside the one before.
std::vector<ByteNeed> disk_needs(int64_t num_parameters, int64_t heads_bytes) {
  return {{fmt::format("two checkpoints of {} parameters and moments", num_parameters),
           2 * num_parameters * kSavedBytes},
          {"the heads", heads_bytes}};
}

/// The backbone's own loss for some texts, which it should know.
double lm_head_loss(const at::Tensor& states, const at::Tensor& output,
                    const std::vector<int32_t>& tokens, int64_t chunk) {
  const c10::NoGradGuard no_grad;
  const HeadLoss loss = head_loss(states.to(output.device(), output.scalar_type()), {output, {}},
                                  {tokens, {}, {}}, /*scale=*/0, chunk, {});
  return loss.quality().loss;
}

std::vector<int32_t> answer_tokens(const DatasetReader& dataset,
                                   const std::vector<int64_t>& samples) {
  std::vector<int32_t> tokens;
  for (const int64_t sample : samples) {
    const auto answer = dataset.answer(sample);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
  }
  return tokens;
}

/// One step on the first samples, as many as make a batch.
FirstStep try_heads(const TrainConfig& config, MedusaHeads& heads, const TrainInputs& inputs,
                    const std::vector<int64_t>& pool_samples) {
  FirstStep first;
  for (const int64_t sample : pool_samples) {
    if (first.positions >= config.batch_positions) break;
    first.samples.push_back(sample);
    first.positions += num_positions(inputs.dataset, sample);
  }
  const auto label_rows = rows_of_tokens(heads);
  const BatchRecipe recipe = batch_recipe(config, heads, inputs.backbone, label_rows);
  const HiddenSource hidden = open_hidden(config, inputs);
  HeadTrainer trainer(config, heads, inputs.backbone);
  const auto began = Clock::now();
  const ShuffleBuffer pool(inputs.dataset, first.samples, hidden, recipe);
  std::vector<int64_t> positions(static_cast<size_t>(pool.size()));
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<Batch> batches{pool.batch(positions)};
  const StepOutcome report = trainer.step(batches, /*learning_rate=*/0);
  first.seconds = seconds_since(began);
  first.heads = report.heads;

  NamedTensors all{{"the dataset's states", batches[0].hidden}};
  for (const auto& named : named_weights(inputs.backbone)) all.push_back(named);
  check_finite(report.loss, report.gradient_norm, {0, first.samples, "train.learning_rate", ""},
               all);
  std::vector<at::Tensor> states;
  for (const int64_t sample : first.samples) states.push_back(hidden(sample));
  first.lm_head_loss =
      lm_head_loss(at::cat(states), inputs.backbone.lm_head,
                   answer_tokens(inputs.dataset, first.samples), config.chunk_positions);
  return first;
}

/// The program, LibTorch, its threads' stacks and what lies between blocks; measured, about.
const ByteNeed kProgram{"the program and LibTorch", 400'000'000};

/// Activations of one layer whose graph is kept, in float32, about: norms, queries, keys, values
/// and their rotated copies, the attention output, both halves of the feed-forward part and their
/// product; and the gradients of all these.
int64_t layer_bytes(const ModelConfig& c, int64_t tokens) {
  const int64_t qkv = (c.num_heads + 2 * c.num_kv_heads) * c.head_size;
  return 2 * 4 * tokens *
         (6 * c.hidden_size + 4 * qkv + 2 * c.num_heads * c.head_size + 6 * c.mlp_size);
}

std::vector<ByteNeed> joint_memory(const JointConfig& joint, const TunedLlama& llama,
                                   int64_t num_parameters) {
  const Weights& weights = llama.original();
  const ModelConfig& c = weights.config;
  std::vector<ByteNeed> needs{
      kProgram,
      {fmt::format("the backbone as it was, {}", toString(weights.lm_head.scalar_type())),
       bytes_of(named_weights(weights))},
      {fmt::format("{} trained parameters, gradients and moments", num_parameters),
       num_parameters * kMasterBytes},
      {fmt::format("inputs of {} layers for {} tokens", c.num_layers, joint.batch_tokens),
       4 * joint.batch_tokens * c.hidden_size * (c.num_layers + 1)},
      {"activations of one layer and their gradients", layer_bytes(c, joint.batch_tokens)},
      {fmt::format("logits of {} positions, six times", joint.chunk_positions),
       24 * joint.chunk_positions * c.vocab_size}};
  if (llama.trains_lm_head())
    needs.push_back(
        {"the LM head with its adapter, and its gradient", 12 * c.vocab_size * c.hidden_size});
  return needs;
}

}  // namespace

int64_t total_bytes(const std::vector<ByteNeed>& needs) {
  int64_t sum = 0;
  for (const ByteNeed& need : needs) sum += need.bytes;
  return sum;
}

double ResourceEstimate::seconds() const {
  return first.positions == 0 ? 0
                              : first.seconds / static_cast<double>(first.positions) *
                                    static_cast<double>(num_positions);
}

std::vector<std::string> ResourceEstimate::warnings() const {
  std::vector<std::string> out;
  if (first.lm_head_loss > kStrangeShare * first.uniform_loss)
    out.push_back(
        fmt::format("the backbone's own loss on these answers is {:.2f} nats, that of knowing "
                    "nothing {:.2f}: are these its answers, with its tokenizer and template?",
                    first.lm_head_loss, first.uniform_loss));
  for (size_t k = 0; k < first.heads.size(); ++k)
    if (first.heads[k].num_labels == 0)
      out.push_back(fmt::format(
          "head {} has no label in the first batch: are the answers shorter than {} tokens?", k,
          k + 2));
  return out;
}

ResourceEstimate estimate_resources(const TrainConfig& config, const HeadsConfig& heads,
                                    const TrainInputs& inputs) {
  check_inputs(config, heads, inputs);
  ResourceEstimate out;
  const TrainPlan plan = plan_training(config, inputs.dataset);
  MedusaHeads trained = first_heads(config, heads, inputs);
  const int64_t hidden_size = trained.hidden_size;
  out.num_parameters = num_parameters(trained);
  out.num_steps = plan.num_steps();
  out.num_positions = plan.positions_before.back();
  out.memory = {
      kProgram,
      {fmt::format("embedding and LM head, {}", toString(inputs.backbone.lm_head.scalar_type())),
       bytes_of(named_weights(inputs.backbone))},
      {fmt::format("{} trained parameters, gradients and moments", out.num_parameters),
       out.num_parameters * kMasterBytes},
      {fmt::format("a pool of {} positions, bfloat16 states and labels", config.shuffle_positions),
       config.shuffle_positions * (2 * hidden_size + 8 * config.soft_top)},
      {fmt::format("logits of {} positions, twice", config.chunk_positions),
       8 * config.chunk_positions * trained.vocab_size}};
  if (config.hidden != HiddenFrom::Online && inputs.dataset.num_hidden() > 0)
    out.memory.push_back(
        {"as many states, read ahead", config.shuffle_positions * 2 * hidden_size});
  if (trained.prefix) {
    const auto number = static_cast<int64_t>(inputs.backbone.embedding.element_size());
    const ModelConfig& c = trained.prefix->config;
    // States and roots; then in float32, each with its gradient: the residual stream, its norm,
    // keys and values, the latter before and after they turn.
    out.memory.push_back(
        {fmt::format("the prefix layer over {} positions", config.shuffle_positions),
         config.shuffle_positions *
             (2 * number * hidden_size +
              8 * (3 * hidden_size + 3 * 2 * c.num_kv_heads * c.head_size))});
  }
  if (inputs.llama != nullptr)
    out.memory.push_back({"the backbone, to compute states that are not in the dataset",
                          bytes_of(named_weights(inputs.llama->weights()))});
  out.disk = disk_needs(out.num_parameters, 4 * out.num_parameters);
  out.first = try_heads(config, trained, inputs, plan.pools[0]);
  out.first.uniform_loss = std::log(static_cast<double>(trained.vocab_size));
  return out;
}

ResourceEstimate estimate_resources(const TrainConfig& config, const JointConfig& joint,
                                    const JointInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  ResourceEstimate out;
  const JointPlan plan = plan_joint(config, joint, inputs.dataset);
  MedusaHeads heads = inputs.heads;
  TunedLlama llama(inputs.backbone, joint, config.seed);
  JointTrainer trainer(config, joint, inputs.dataset, heads, llama);
  out.num_parameters = count_of(trainer.parameters());
  out.num_steps = plan.num_steps;
  for (int64_t step = 0; step < plan.num_steps; ++step)
    for (const SampleBatch& batch : plan.batches_of(step)) out.num_positions += batch.positions;
  out.memory = joint_memory(joint, llama, out.num_parameters);
  out.disk = disk_needs(out.num_parameters, 4 * num_parameters(heads));
  out.disk.push_back(
      {"the model, bfloat16", 2 * bytes_of(named_weights(inputs.backbone)) /
                                  static_cast<int64_t>(inputs.backbone.lm_head.element_size())});

  const auto batches = plan.batches_of(0);
  const auto began = Clock::now();
  const JointReport report = trainer.step(batches, {0, joint.heads_weight, /*learning_rate=*/0});
  out.first.seconds = seconds_since(began);
  out.first.heads = report.heads;
  for (const SampleBatch& batch : batches) {
    out.first.samples.insert(out.first.samples.end(), batch.samples.begin(), batch.samples.end());
    out.first.positions += batch.positions;
  }
  check_finite(report.loss, report.gradient_norm,
               {0, out.first.samples, "train.joint.learning_rate", ""},
               named_weights(inputs.backbone));
  const BatchTexts texts = texts_of(inputs.dataset, out.first.samples);
  const at::Tensor states =
      llama.forward_original(llama.pack(texts.tokens, texts.lengths))
          .index_select(
              0, at::tensor(texts.answer_rows, at::kLong).to(inputs.backbone.embedding.device()));
  out.first.lm_head_loss =
      lm_head_loss(states, inputs.backbone.lm_head,
                   answer_tokens(inputs.dataset, out.first.samples), joint.chunk_positions);
  out.first.uniform_loss = std::log(static_cast<double>(inputs.backbone.config.vocab_size));
  return out;
}

}  // namespace medusa
