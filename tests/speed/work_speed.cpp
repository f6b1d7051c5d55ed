#include "tests/speed/work_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "backbone/llama.h"
#include "backbone/random_weights.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/dataset_writer.h"
#include "data/prompts.h"
#include "data/self_distill.h"
#include "infer/backbone_target.h"
#include "runtime/generation.h"
#include "train/trainer.h"

namespace medusa {
namespace {

constexpr int64_t kPromptTokens = 32;
constexpr int64_t kSamplesOfAShard = 256;

std::vector<DistillPrompt> arbitrary_prompts(int64_t count, int64_t vocab_size) {
  std::vector<DistillPrompt> prompts;
  for (int64_t i = 0; i < count; ++i) {
    DistillPrompt& prompt = prompts.emplace_back();
    prompt.id = std::to_string(i);
    for (int64_t t = 0; t < kPromptTokens; ++t)
      prompt.tokens.push_back(static_cast<TokenId>((7919 * t + 104729 * i) % vocab_size));
  }
  return prompts;
}

WorkSpeed distil(const Weights& weights, int32_t sequences, int32_t new_tokens,
                 const std::filesystem::path& folder) {
  const ModelConfig& model = weights.config;
  reset_peak_memory(weights.embedding.device());
  Llama llama(weights);
  const int64_t rows = kPromptTokens + new_tokens;
  BackboneTarget target(llama, sequences, rows);
  const std::vector<DistillPrompt> prompts = arbitrary_prompts(sequences, model.vocab_size);
  SamplingConfig sampling;
  sampling.temperature = 0.7;
  DatasetWriter writer(folder,
                       {weights.fingerprint, "none", fingerprint_prompts(prompts), "", 1,
                        model.vocab_size, model.hidden_size, StateFormat::Bfloat16, 0},
                       std::ssize(prompts), kSamplesOfAShard);
  const DistillReport report =
      self_distill(prompts, make_generate_function(target, sampling, /*eos=*/{}, model.hidden_size),
                   {.max_new_tokens = new_tokens, .max_sequence = rows}, Random(1), writer);
  return {static_cast<double>(report.generated) / report.seconds,
          peak_memory(weights.embedding.device())};
}

WorkSpeed train(const Weights& weights, const TrainConfig& config,
                const std::filesystem::path& scratch) {
  reset_peak_memory(weights.embedding.device());
  const DatasetReader dataset(scratch / "dataset");
  HeadsConfig heads;
  heads.num_heads = 4;
  heads.input = HeadInput::Root;
  heads.output_size = std::min(heads.output_size, weights.config.vocab_size);
  const TrainResult result = train_heads(
      config, heads,
      {dataset, weights, nullptr, scratch / "heads", scratch / "train", "random weights\n"});
  return {static_cast<double>(result.positions) / result.seconds,
          peak_memory(weights.embedding.device())};
}

}  // namespace

WorkSpeeds measure_work_speed(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                              int32_t sequences, int32_t new_tokens,
                              const std::filesystem::path& scratch, uint64_t seed) {
  TrainConfig config;
  config.optimizer.epochs = 1;
  WorkSpeeds speeds{.shape = shape.name,
                    .device = device.str(),
                    .dtype = c10::toString(dtype),
                    .sequences = sequences,
                    .new_tokens = new_tokens,
                    .batch = config.batch_positions,
                    .distil = {},
                    .train = {}};
  const Weights weights = random_weights(shape.config, dtype, device, seed);
  speeds.distil = distil(weights, sequences, new_tokens, scratch / "dataset");
  speeds.train = train(weights, config, scratch);
  return speeds;
}

std::string work_speed_table(const WorkSpeeds& speeds) {
  return fmt::format(
      "{}, {}, {}\ndistil: {} sequences of {} tokens, {:.0f} tokens/s{}\n"
      "train: 4 heads, {} positions a step, {:.0f} positions/s{}\n",
      speeds.shape, speeds.device, speeds.dtype, speeds.sequences, speeds.new_tokens,
      speeds.distil.per_second, memory_text(speeds.distil.peak), speeds.batch,
      speeds.train.per_second, memory_text(speeds.train.peak));
}

}  // namespace medusa
