#include "train/joint/joint_trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <map>
#include <numeric>

#include "train/loss/backbone_loss.h"
#include "train/processes/data_parallel.h"

namespace medusa {
namespace {

at::Tensor index_tensor(const std::vector<int64_t>& rows, at::Device device) {
  return at::tensor(rows, at::kLong).to(device);
}

std::vector<ParameterGroup> groups_of(const JointConfig& config, const MedusaHeads& heads,
                                      const TunedLlama& llama) {
  NamedTensors of_heads;
  for (const auto& [name, tensor] : named_parameters(heads))
    of_heads.emplace_back("heads." + name, tensor);
  // All of the heads: the authors' code leaves their biases at the backbone's rate.
  return {{llama.named_parameters(), 1}, {std::move(of_heads), config.head_rate_multiple}};
}

}  // namespace

JointTrainer::JointTrainer(const SharedTrainConfig& config, const JointConfig& joint,
                           const DatasetReader& dataset, MedusaHeads& heads, TunedLlama& llama,
                           ProcessGroup* group)
    : config_(config),
      joint_(joint),
      dataset_(dataset),
      heads_(heads),
      llama_(llama),
      group_(group),
      label_rows_(rows_of_tokens(heads)),
      recipe_(batch_recipe(config, heads, llama.original(), label_rows_)),
      pass_(config, heads),
      optimizer_(groups_of(joint, heads, llama)) {
  if (!heads.kept_tokens.empty())
    kept_ = at::tensor(heads.kept_tokens, at::kLong).to(llama.original().lm_head.device());
}

NamedTensors JointTrainer::parameters() const {
  NamedTensors out;
  for (const ParameterGroup& group : groups_of(joint_, heads_, llama_))
    out.insert(out.end(), group.parameters.begin(), group.parameters.end());
  return out;
}

JointTrainer::Prepared JointTrainer::prepare(const SampleBatch& batch,
                                             const BatchRecipe& recipe) const {
  const at::Device device = llama_.original().embedding.device();
  const BatchTexts texts = texts_of(dataset_, batch.samples);
  Prepared out;
  out.texts = llama_.pack(texts.tokens, texts.lengths);
  out.answer_rows = index_tensor(texts.answer_rows, device);
  out.teacher = llama_.forward_original(out.texts).index_select(0, out.answer_rows);
  std::map<int64_t, std::pair<int64_t, int64_t>> rows_of;  // sample -> first answer row, count
  std::vector<int64_t> head_rows;
  for (const int64_t sample : batch.samples) {
    const auto answer = dataset_.answer(sample);
    const auto first = static_cast<int64_t>(out.tokens.size());
    rows_of[sample] = {first, std::ssize(answer)};
    for (int64_t i = 0; i < num_positions(dataset_, sample); ++i) head_rows.push_back(first + i);
    out.tokens.insert(out.tokens.end(), answer.begin(), answer.end());
  }
  out.head_rows = index_tensor(head_rows, device);
  const HiddenSource as_it_was = [&](int64_t sample) {
    const auto [first, count] = rows_of.at(sample);
    return out.teacher.narrow(0, first, count).to(at::kCPU, at::kBFloat16);
  };
  const ShuffleBuffer pool(dataset_, batch.samples, as_it_was, recipe);
  std::vector<int64_t> positions(static_cast<size_t>(pool.size()));
  std::iota(positions.begin(), positions.end(), 0);
  out.batch = pool.batch(positions);
  return out;
}

JointTrainer::Output JointTrainer::open_output() const {
  const c10::AutoGradMode grad(true);
  const bool trained = llama_.trains_lm_head();
  Output out;
  out.graph = llama_.lm_head();
  out.whole.weight = out.graph.detach();
  if (trained) out.whole.gradient = at::zeros_like(out.whole.weight, at::kFloat);
  out.heads = out.whole;
  if (kept_.defined()) {
    out.heads.weight = out.whole.weight.index_select(0, kept_);
    if (trained) out.heads.gradient = at::zeros_like(out.heads.weight, at::kFloat);
  }
  return out;
}

void JointTrainer::close_output(const Output& output) const {
  if (!llama_.trains_lm_head()) return;
  at::Tensor gradient = output.whole.gradient;
  if (kept_.defined()) gradient.index_add_(0, kept_, output.heads.gradient);
  output.graph.backward(gradient.to(output.graph.scalar_type()));
}

double JointTrainer::backbone_loss(const Prepared& prepared, const Output& output,
                                   const at::Tensor& states, double scale,
                                   const at::Tensor& gradient) const {
  const int64_t chunk = joint_.chunk_positions;
  if (joint_.backbone_loss == BackboneLoss::Text)
    return head_loss(states, output.whole, {prepared.tokens, {}, {}}, scale, chunk, gradient).loss;
  const ModelOutput was{prepared.teacher, llama_.original().lm_head};
  return divergence(was, states, output.whole, scale, chunk, gradient).kl;
}

/// @returns the batch's L_0, a sum over its positions.
double JointTrainer::accumulate(const Prepared& prepared, const Output& output,
                                int64_t num_positions, std::span<const double> scales,
                                JointReport& report) {
  const c10::NoGradGuard no_grad;
  const at::Tensor all = llama_.forward(prepared.texts, prepared.dropout);
  const at::Tensor states = all.index_select(0, prepared.answer_rows);  // [P, H]
  at::Tensor gradient = at::empty_like(states);
  const double loss =
      backbone_loss(prepared, output, states, 1.0 / static_cast<double>(num_positions), gradient);
  Batch batch = prepared.batch;
  if (heads_.prefix)
    batch.answers.hidden = states.detach().set_requires_grad(true);
  else
    batch.hidden = states.index_select(0, prepared.head_rows).set_requires_grad(true);
  pass_.accumulate(batch, output.heads, scales, report.heads);
  if (heads_.prefix && batch.answers.hidden.grad().defined())
    gradient.add_(batch.answers.hidden.grad());
  else if (batch.hidden.grad().defined())
    gradient.index_add_(0, prepared.head_rows, batch.hidden.grad());
  at::Tensor by_token = at::zeros_like(all);  // prompts have no gradient
  by_token.index_copy_(0, prepared.answer_rows, gradient);
  llama_.backward(by_token);
  return loss;
}

JointReport JointTrainer::step(std::span<const SampleBatch> batches, const JointStep& step) {
  JointReport report;
  std::vector<Prepared> prepared;
  std::vector<Batch> head_batches;
  int64_t num_positions = 0;
  const auto first = static_cast<size_t>(group_rank(group_)),
             stride = static_cast<size_t>(group_size(group_));
  for (size_t i = first; i < batches.size(); i += stride) {
    prepared.push_back(prepare(batches[i], recipe_));
    prepared.back().dropout =
        Random(config_.seed).child(static_cast<uint64_t>(step.index)).child(i + 1);
    head_batches.push_back(prepared.back().batch);
  }
  for (const SampleBatch& batch : batches) num_positions += batch.positions;
  std::vector<int64_t> num_labels(static_cast<size_t>(heads_.config.num_heads));
  if (!head_batches.empty()) num_labels = label_counts(head_batches);
  sum_counts(group_, num_labels);
  std::vector<double> scales = head_scales(config_, num_labels);
  for (double& scale : scales) scale *= step.heads_weight;
  report.heads.resize(scales.size());
  const Output output = open_output();
  for (const Prepared& each : prepared)
    report.backbone_loss += accumulate(each, output, num_positions, scales, report) /
                            static_cast<double>(num_positions);
  close_output(output);
  sum_gradients(group_, parameters());
  sum_losses(group_, report.heads);
  sum_value(group_, report.backbone_loss);
  report.loss = report.backbone_loss + step.heads_weight * weighted_loss(config_, report.heads);
  report.gradient_norm = optimizer_.step(step.learning_rate, joint_.optimizer.weight_decay,
                                         joint_.optimizer.clip_norm);
  return report;
}

void JointTrainer::measure(const SampleBatch& batch, std::vector<HeadLoss>& heads) {
  const c10::NoGradGuard no_grad;
  BatchRecipe recipe = recipe_;
  recipe.soft_output = at::Tensor();  // the text judges
  Prepared prepared = prepare(batch, recipe);
  const at::Tensor states =
      llama_.forward(prepared.texts, std::nullopt).index_select(0, prepared.answer_rows);
  prepared.batch.hidden = states.index_select(0, prepared.head_rows);
  if (heads_.prefix) prepared.batch.answers.hidden = states;
  pass_.measure(prepared.batch, open_output().heads, heads);
}

}  // namespace medusa
