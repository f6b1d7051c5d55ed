#include "train/joint/drift_guard.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backbone/llama.h"
#include "train/loss/backbone_loss.h"
#include "train/loss/loss.h"

namespace medusa {
namespace {

/// What plain greedy decoding answers, one token at a time.
std::vector<TokenId> answer_greedily(Llama& llama, KvCache& cache, std::span<const TokenId> prompt,
                                     int64_t most) {
  const int32_t slot = cache.open();
  at::Tensor hidden = llama.prefill(slot, prompt, cache).unsqueeze(0);  // [1, H]
  std::vector<TokenId> answer;
  const auto& eos = llama.config().eos;
  const std::vector<int32_t> only{0};
  for (int64_t i = 0; i < most; ++i) {
    answer.push_back(static_cast<TokenId>(llama.logits(hidden).argmax(1).item<int64_t>()));
    if (std::find(eos.begin(), eos.end(), answer.back()) != eos.end()) break;
    const Segment next{slot, {&answer.back(), 1}, {}};
    hidden = llama.forward({&next, 1}, cache);
    cache.commit(slot, only);
  }
  cache.close(slot);
  return answer;
}

/// The most probable token behind each state.
at::Tensor choices(const at::Tensor& states, const at::Tensor& output, int64_t chunk) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& rows : states.split(chunk))
    parts.push_back(at::linear(rows, output).argmax(1));
  return at::cat(parts);
}

}  // namespace

std::vector<std::pair<std::string, double>> Drift::numbers() const {
  return {{"guard_kl_nats", kl},
          {"guard_perplexity", perplexity},
          {"guard_original_perplexity", original_perplexity},
          {"guard_greedy_match", greedy_match}};
}

DriftGuard::DriftGuard(const GuardConfig& config, const DatasetReader& dataset,
                       const std::vector<int64_t>& samples, const TunedLlama& llama, int64_t chunk)
    : config_(config), chunk_(chunk) {
  if (samples.empty()) return;
  const c10::NoGradGuard no_grad;
  const int64_t context = llama.original().config.context;
  Llama decoder(llama.original(), Kernels::Reference);  // shares the weights
  Answers written, greedy;
  for (const int64_t sample : samples) {
    const auto all = dataset.tokens(sample), answer = dataset.answer(sample);
    const auto prompt = all.first(static_cast<size_t>(dataset.answer_start(sample)));
    written.push_back({{prompt.begin(), prompt.end()}, {answer.begin(), answer.end()}});
    const int64_t most = std::min(config.greedy_tokens, context - std::ssize(prompt));
    if (most <= 0) continue;
    KvCache cache = decoder.make_cache(1, std::ssize(prompt) + most);
    greedy.push_back(
        {{prompt.begin(), prompt.end()}, answer_greedily(decoder, cache, prompt, most)});
  }
  answers_ = make_probe(written, llama);
  if (!greedy.empty()) greedy_ = make_probe(greedy, llama);
  original_perplexity_ = perplexity(answers_, answers_.states, llama.original().lm_head);
}

DriftGuard::Probe DriftGuard::make_probe(const Answers& answers, const TunedLlama& llama) const {
  Probe probe;
  std::vector<TokenId> tokens;
  std::vector<int64_t> lengths, rows;
  for (const auto& [prompt, answer] : answers) {
    const int64_t begin = std::ssize(tokens), before = std::ssize(prompt) - 1;
    tokens.insert(tokens.end(), prompt.begin(), prompt.end());
    tokens.insert(tokens.end(), answer.begin(), answer.end() - 1);  // nothing follows the last one
    lengths.push_back(std::ssize(tokens) - begin);
    for (int64_t i = 0; i < std::ssize(answer); ++i) rows.push_back(begin + before + i);
    probe.tokens.insert(probe.tokens.end(), answer.begin(), answer.end());
    probe.counts.push_back(std::ssize(answer));
  }
  probe.texts = llama.pack(tokens, lengths);
  probe.rows = at::tensor(rows, at::kLong).to(probe.texts->ids.device());
  probe.states = llama.forward_original(*probe.texts).index_select(0, probe.rows);
  return probe;
}

double DriftGuard::perplexity(const Probe& probe, const at::Tensor& states,
                              const at::Tensor& output) const {
  const HeadLoss loss =
      head_loss(states, {output, {}}, {probe.tokens, {}, {}}, /*scale=*/0, chunk_, {});
  return std::exp(loss.quality().loss);
}

/// A greedy answer is the same exactly if, given the earlier one's tokens, the same token is chosen
/// at each place: so one pass over the earlier answer tells, and none has to be decoded again.
double DriftGuard::greedy_match(TunedLlama& llama) const {
  if (!greedy_.texts) return 1;
  const at::Tensor states =
      llama.forward(*greedy_.texts, std::nullopt).index_select(0, greedy_.rows);
  const at::Tensor same = choices(states, llama.lm_head(), chunk_)
                              .eq(choices(greedy_.states, llama.original().lm_head, chunk_));
  int64_t begin = 0, matching = 0;
  for (const int64_t count : greedy_.counts) {
    matching += same.narrow(0, begin, count).all().item<bool>() ? 1 : 0;
    begin += count;
  }
  return static_cast<double>(matching) / static_cast<double>(greedy_.counts.size());
}

Drift DriftGuard::measure(TunedLlama& llama) const {
  Drift drift;
  if (!watches()) return drift;
  const c10::NoGradGuard no_grad;
  const at::Tensor output = llama.lm_head();
  const at::Tensor states =
      llama.forward(*answers_.texts, std::nullopt).index_select(0, answers_.rows);
  const ModelOutput was{answers_.states, llama.original().lm_head};
  const Divergence found = divergence(was, states, {output, {}}, /*scale=*/0, chunk_, {});
  drift.kl = found.mean();
  drift.positions = found.positions;
  drift.perplexity = perplexity(answers_, states, output);
  drift.original_perplexity = original_perplexity_;
  drift.greedy_match = greedy_match(llama);
  drift.answers = std::ssize(greedy_.counts);
  return drift;
}

std::optional<std::string> DriftGuard::exceeded(const Drift& drift) const {
  // Written so that a number that is none fails.
  if (!(drift.kl <= config_.max_kl))
    return fmt::format("KL {:.4g} nats, at most {:.4g} (train.joint.guard.max_kl)", drift.kl,
                       config_.max_kl);
  const double ratio = drift.perplexity / drift.original_perplexity;
  if (!(ratio <= config_.max_perplexity_ratio))
    return fmt::format(
        "perplexity {:.4g} times as high, at most {:.4g} times "
        "(train.joint.guard.max_perplexity_ratio)",
        ratio, config_.max_perplexity_ratio);
  if (!(drift.greedy_match >= config_.min_greedy_match))
    return fmt::format(
        "{:.2g} of the greedy answers the same, at least {:.2g} "
        "(train.joint.guard.min_greedy_match)",
        drift.greedy_match, config_.min_greedy_match);
  return std::nullopt;
}

}  // namespace medusa
