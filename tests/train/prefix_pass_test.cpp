#include "train/prefix_pass.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "heads/prefix_model.h"
#include "tests/train/tiny_run.h"
#include "train/head_trainer.h"

namespace medusa {
namespace {

HeadsConfig prefix_config() {
  HeadsConfig config;
  config.num_heads = 2;
  config.input = HeadInput::Prefix;
  config.output = HeadOutput::Shared;
  return config;
}

MedusaHeads random_prefix_heads(const Weights& backbone) {
  MedusaHeads heads = make_heads(prefix_config(), backbone, {}, 3);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(17);
  for (auto& [name, tensor] : named_parameters(heads))
    at::Tensor(tensor).copy_(0.15 * at::randn(tensor.sizes(), generator, at::kFloat));
  return heads;
}

at::Tensor random_rows(int64_t rows, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({rows, 64}, generator, at::kFloat);
}

/// Three answers with their roots.
struct Answers {
  explicit Answers(const Weights& backbone) {
    rows.hidden = random_rows(32, 5).to(backbone.embedding.scalar_type());
    rows.lengths = {12, 1, 19};
    rows.roots = token_embeddings(backbone, embedding_gain(backbone),
                                  at::tensor(roots, at::kInt).view({-1, 1}))
                     .squeeze(1);
  }
  std::vector<TokenId> roots = random_tokens(7, 32);
  AnswerRows rows;
};

void expect_as_decoding(bool has_scale) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Weights backbone = tiny_weights(1, tiny_config(), dtype);
    MedusaHeads heads = random_prefix_heads(backbone);
    if (has_scale) heads.prefix->scale = random_rows(1, 12).squeeze(0);
    if (has_scale) heads.prefix->final_norm = random_rows(1, 13).squeeze(0).abs() + 0.5;
    const RopeTable rope = make_rope_table(heads.prefix->config, at::kCPU);
    const Answers answers(backbone);
    PrefixModel model(*heads.prefix, backbone);
    std::vector<at::Tensor> parts;
    int64_t begin = 0;
    for (const int64_t length : answers.rows.lengths) {
      parts.push_back(PrefixText(model).extend(
          answers.rows.hidden.narrow(0, begin, length),
          std::span(answers.roots)
              .subspan(static_cast<size_t>(begin), static_cast<size_t>(length))));
      begin += length;
    }
    const at::Tensor expected = at::cat(parts);
    std::vector<int64_t> all(32);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<std::vector<int64_t>> asked{
        all, {31}, {12}, {0}, {20, 3, 12, 31, 4, 13}, {5, 2, 30, 29, 28, 27, 26}};
    const double tolerance = dtype == at::kFloat ? 1e-4 : 0.06;
    for (const auto& rows : asked) {
      const at::Tensor found = prefix_states(*heads.prefix, rope, answers.rows, rows);
      EXPECT_EQ(found.scalar_type(), dtype);
      EXPECT_TRUE(at::allclose(found, expected.index_select(0, at::tensor(rows, at::kLong)),
                               tolerance, tolerance))
          << rows.size() << " rows";
    }
  }
}

TEST(PrefixPass, IsWhatDecodingComputesAtThesePositions) {
  for (const bool has_scale : {false, true}) expect_as_decoding(has_scale);
}

TEST(PrefixPass, GradientsAreTheNumericOnes) {
  const Weights backbone = tiny_weights(1);
  const MedusaHeads heads = random_prefix_heads(backbone);
  const RopeTable rope = make_rope_table(heads.prefix->config, at::kCPU);
  Answers answers(backbone);
  answers.rows.hidden.set_requires_grad(true);
  std::vector<std::pair<std::string, at::Tensor>> leaves = named_parameters(*heads.prefix);
  leaves.emplace_back("hidden", answers.rows.hidden);
  for (auto& [name, tensor] : leaves) tensor.set_requires_grad(true);
  const std::vector<int64_t> rows{20, 3, 12, 31, 4, 13};
  const at::Tensor weights = random_rows(6, 8);
  const auto loss = [&] {
    return (prefix_states(*heads.prefix, rope, answers.rows, rows) * weights).sum();
  };
  loss().backward();
  const c10::NoGradGuard no_grad;
  for (auto& [name, tensor] : leaves) {
    const double expected = tensor.grad().norm().item<double>();
    ASSERT_GT(expected, 1e-3) << name;
    const at::Tensor direction = tensor.grad() / expected;
    const double step = 3e-3 * std::max(tensor.norm().item<double>(), 0.5);
    tensor.add_(direction, step);
    const double above = loss().item<double>();
    tensor.sub_(direction, 2 * step);
    const double below = loss().item<double>();
    tensor.add_(direction, step);
    EXPECT_NEAR((above - below) / (2 * step), expected, 0.03 * expected) << name;
  }
}

/// Answers of noise whose first root says what every label is: 0 or 1 of the output. What stands at
/// a position itself says nothing.
Batch far_batch(const Weights& backbone, uint64_t seed) {
  constexpr int64_t kAnswers = 24, kLength = 6;
  Batch batch;
  batch.num_heads = 2;
  std::vector<TokenId> roots = random_tokens(seed, kAnswers * kLength);
  std::vector<int32_t> labels;
  for (int64_t answer = 0; answer < kAnswers; ++answer) {
    const auto first = static_cast<size_t>(answer * kLength);
    const auto kind = static_cast<int32_t>(Random(seed).bits(RandomUse::Init, answer) % 2);
    roots[first] = kind == 0 ? 100 : 101;
    for (int64_t i = 1; i < kLength; ++i) {
      roots[first + static_cast<size_t>(i)] %= 100;
      batch.rows.push_back(answer * kLength + i);
      labels.push_back(kind);
    }
    batch.answers.lengths.push_back(kLength);
  }
  for (int head = 0; head < 2; ++head)
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  batch.answers.hidden = random_rows(kAnswers * kLength, seed);
  const at::Tensor ids = at::tensor(roots, at::kInt).view({-1, 1});
  const at::Tensor embedded = token_embeddings(backbone, embedding_gain(backbone), ids);
  batch.answers.roots = embedded.squeeze(1);
  const at::Tensor rows = at::tensor(batch.rows, at::kLong);
  batch.hidden = batch.answers.hidden.index_select(0, rows);
  batch.embeddings = embedded.index_select(0, rows);
  return batch;
}

TEST(PrefixPass, LaterHeadsReachTheLayerWithTheirShareOfTheGradient) {
  const Weights backbone = tiny_weights(1);
  const Batch batch = far_batch(backbone, 3);
  const auto gradients = [&](double share, std::vector<double> scales) {
    MedusaHeads heads = random_prefix_heads(backbone);
    TrainConfig config;
    config.chunk_positions = 64;
    config.trunk_gradient = share;
    std::vector<HeadLoss> losses;
    HeadPass(config, heads).accumulate(batch, {shared_output(heads, backbone), {}}, scales, losses);
    std::map<std::string, at::Tensor> out;
    for (const auto& [name, tensor] : named_parameters(heads))
      if (tensor.grad().defined()) out[name] = tensor.grad();
    return out;
  };
  const std::vector<double> scales{0.01, 0.008};
  const auto whole = gradients(1, scales), half = gradients(0.5, scales),
             none = gradients(0, scales), first = gradients(1, {0.01, 0});
  for (const auto& [name, gradient] : whole) {
    SCOPED_TRACE(name);
    const double size = gradient.norm().item<double>();
    ASSERT_GT(size, 0);
    if (!name.starts_with("prefix.")) {  // heads have all of their own
      EXPECT_TRUE(at::allclose(half.at(name), gradient, 1e-4, 1e-6 * size));
      continue;
    }
    EXPECT_GT((gradient - first.at(name)).norm().item<double>(), 0.01 * size);
    EXPECT_TRUE(at::allclose(none.at(name), first.at(name), 1e-3, 1e-4 * size));
    EXPECT_TRUE(at::allclose(half.at(name), (gradient + first.at(name)) / 2, 1e-3, 1e-4 * size));
  }
}

TEST(PrefixPass, LearnsWhatOnlyEarlierPositionsKnow) {
  const Weights backbone = tiny_weights(1);
  TrainConfig config;
  config.chunk_positions = 64;
  std::vector<double> losses;
  for (const HeadInput input : {HeadInput::Root, HeadInput::Prefix}) {
    HeadsConfig heads_config = prefix_config();
    heads_config.input = input;
    MedusaHeads heads = make_heads(heads_config, backbone, {}, 3);
    HeadTrainer trainer(config, heads, backbone);
    for (uint64_t step = 0; step < 150; ++step)
      trainer.step(std::vector<Batch>{far_batch(backbone, step)}, 3e-3);
    std::vector<HeadLoss> judged;
    trainer.measure(far_batch(backbone, 1000), judged);
    losses.push_back(judged[0].quality().loss);
  }
  EXPECT_GT(losses[0], 0.65);  // of two kinds as often: 0.69
  EXPECT_LT(losses[1], 0.2);
}

}  // namespace
}  // namespace medusa
