#include "tools/measure/typical_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/stderr_progress.h"
#include "heads/tree/step_sum.h"
#include "infer/row_math.h"
#include "infer/sampling.h"
#include "tools/bench/rounds.h"
#include "tools/bench/statistics.h"

namespace medusa {
namespace {

constexpr double kTemperature = 0.7;  // where the settings ask for greedy
// δ = √ε is the paper's choice; half and twice of it stand beside.
constexpr double kEpsilons[] = {0.03, 0.09, 0.2, 0.4};
constexpr double kDeltaFactors[] = {0.5, 1, 2};

/// One way of sampling, and what became of each prompt.
struct Contestant {
  Method method;
  std::vector<TextScore> scores;        // [prompts]
  std::vector<double> tokens, seconds;  // [prompts]
};

SamplingConfig sweep_sampling(const RunConfig& config) {
  SamplingConfig sampling = config.generate.infer.sampling;
  if (sampling.temperature == 0) sampling.temperature = kTemperature;
  return sampling;
}

std::vector<TypicalConfig> thresholds() {
  std::vector<TypicalConfig> all;
  for (const double epsilon : kEpsilons)
    for (const double factor : kDeltaFactors)
      all.push_back({epsilon, std::min(1.0, factor * std::sqrt(epsilon))});
  return all;
}

/// @param typical  null: plain sampling.
Method make_contestant(const RunConfig& config, const TypicalConfig* typical,
                       const LoadedDrafting& drafting, BackboneTarget& target) {
  InferConfig settings = config.generate.infer;
  settings.sampling = sweep_sampling(config);
  settings.drafter = typical == nullptr ? DrafterKind::None : DrafterKind::Medusa;
  settings.rule = typical == nullptr ? RuleKind::Match : RuleKind::Typical;
  settings.graphs = false;  // steps are watched
  if (typical != nullptr) settings.typical = *typical;
  return make_method(settings, typical == nullptr ? DraftParts{} : drafting.parts(), target);
}

struct Decoded {
  SampledText text;
  double seconds = 0;
};

Decoded decode_watched(Decoder& decoder, const std::vector<TokenId>& prompt,
                       const DecodeLimits& limits, uint64_t seed) {
  Decoded out{{prompt, {}, {}, seed}, 0};
  size_t standing = 0;  // drafts of the step that are not emitted yet
  std::optional<DecodeRequest> request(std::in_place);
  request->prompt = prompt;
  request->limits = limits;
  request->random = Random(seed);
  request->watch = [&](const StepView& step) { standing = step.accepted.path.size(); };
  request->emit = [&](const EmittedToken& token) {
    out.text.tokens.push_back(token.id);
    out.text.drafted.push_back(standing > 0);
    if (standing > 0) --standing;
    return !interrupted();
  };
  const DecodeTimes times = decode(
      decoder, [&] { return std::exchange(request, std::nullopt); },
      [](size_t, const DecodeStats&) { return true; });
  out.seconds = times.decode_s();
  return out;
}

/// Of all prompts, with the interval of a bootstrap over them.
Estimate mean_surprisal(const std::vector<TextScore>& scores, uint64_t seed) {
  std::vector<StepSum> sums;
  for (const TextScore& score : scores) sums.push_back({score.surprisal, score.tokens});
  return tokens_per_step(sums, Random(seed));
}

TypicalPoint point_of(const TypicalConfig& typical, const Contestant& it, const Contestant& plain,
                      uint64_t seed) {
  std::vector<PairedWork> work;
  TextScore sum;
  for (size_t i = 0; i < it.scores.size(); ++i) {
    work.push_back({it.tokens[i], it.seconds[i], plain.tokens[i], plain.seconds[i]});
    sum.tokens += it.scores[i].tokens;
    sum.kl += it.scores[i].kl;
    sum.agreed += it.scores[i].agreed;
  }
  const double value = speedup(work);
  const Interval interval = speedup_interval(work, seed).value_or(Interval{value, value});
  return {typical.epsilon,
          typical.delta,
          {value, interval.low, interval.high},
          mean_surprisal(it.scores, seed),
          sum.kl / sum.tokens,
          sum.agreed / sum.tokens};
}

}  // namespace

TextScore score_text(BackboneTarget& target, const SampledText& text,
                     const SamplingConfig& sampling) {
  MEDUSA_ASSERT(sampling.temperature > 0 && text.drafted.size() == text.tokens.size());
  const float scale = inverse_temperature(sampling.temperature);
  const Random random(text.seed);
  TextScore score;
  Follower follower(target, text.prompt);
  const std::span<const TokenId> all(text.tokens);
  const size_t at_once = Follower::most_at_once(target.llama());
  for (size_t begin = 0; begin < all.size(); begin += at_once) {
    const auto tokens = all.subspan(begin, std::min(at_once, all.size() - begin));
    const at::Tensor logits = follower.predict(tokens);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto row = logits_row(logits, static_cast<int64_t>(i));
      const SoftmaxSums sums = softmax_sums(row, scale, target.idle_threads());
      const double surprisal =
          sums.log_sum() -
          static_cast<double>((row[static_cast<size_t>(tokens[i])] - sums.max) * scale);
      const auto position = static_cast<int64_t>(text.prompt.size() - 1 + begin + i);
      score.tokens += 1;
      score.surprisal += surprisal;
      if (text.drafted[begin + i]) score.kl += surprisal;
      if (sample(row, sampling, random, RandomUse::Accept, position, target.idle_threads()) ==
          tokens[i])
        score.agreed += 1;
    }
  }
  return score;
}

size_t choose_point(std::span<const TypicalPoint> points, const Estimate& plain_surprisal) {
  MEDUSA_ASSERT(!points.empty());
  const auto is_probable = [&](const TypicalPoint& point) {
    return point.surprisal.value <= plain_surprisal.high;
  };
  const bool any = std::any_of(points.begin(), points.end(), is_probable);
  const auto better = [&](const TypicalPoint& a, const TypicalPoint& b) {
    if (!any) return a.surprisal.value < b.surprisal.value;
    if (is_probable(a) != is_probable(b)) return is_probable(a);
    return a.speedup.value > b.speedup.value;
  };
  return static_cast<size_t>(std::min_element(points.begin(), points.end(), better) -
                             points.begin());
}

TypicalSweep sweep_typical(const RunConfig& config, BackboneTarget& target,
                           const LoadedDrafting& drafting, std::span<const TokenId> eos,
                           const std::vector<std::vector<TokenId>>& prompts) {
  MEDUSA_ASSERT(!prompts.empty());
  const std::vector<TypicalConfig> typical = thresholds();
  std::vector<Contestant> all;
  all.push_back({make_contestant(config, nullptr, drafting, target), {}, {}, {}});
  for (const TypicalConfig& each : typical)
    all.push_back({make_contestant(config, &each, drafting, target), {}, {}, {}});
  const DecodeLimits limits{.max_new_tokens = config.generate.infer.max_new_tokens,
                            .eos = {eos.begin(), eos.end()}};
  Progress progress(stderr_progress(), "typical", "answers",
                    static_cast<int64_t>(prompts.size() * all.size()));
  int64_t done = 0;
  DecodeLimits few = limits;
  few.max_new_tokens = std::min(kWarmUpTokens, limits.max_new_tokens);
  for (Contestant& each : all) decode_watched(*each.method.decoder, prompts[0], few, config.seed);
  for (size_t prompt = 0; prompt < prompts.size() && !interrupted(); ++prompt) {
    std::vector<Decoded> decoded(all.size());
    // Of its own: with the same random numbers answers to two prompts would be one sample.
    const uint64_t seed = Random(config.seed).child(prompt).seed();
    for (const size_t i : method_order(all.size(), prompt, /*repeat=*/0)) {
      target.forget_ended();  // nobody's prompt is computed for the next
      decoded[i] = decode_watched(*all[i].method.decoder, prompts[prompt], limits, seed);
      progress.update(++done);
    }
    if (interrupted()) break;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].tokens.push_back(static_cast<double>(decoded[i].text.tokens.size()));
      all[i].seconds.push_back(decoded[i].seconds);
      all[i].scores.push_back(score_text(target, decoded[i].text, sweep_sampling(config)));
    }
  }
  progress.finish();
  const Contestant& plain = all.front();
  if (plain.scores.empty())
    throw Interrupted("--typical: interrupted before the first prompt was finished; run it again");
  TypicalSweep sweep{
      sweep_sampling(config).temperature, mean_surprisal(plain.scores, config.seed), {}, 0};
  for (size_t i = 0; i < typical.size(); ++i)
    sweep.points.push_back(point_of(typical[i], all[i + 1], plain, config.seed));
  sweep.chosen = choose_point(sweep.points, sweep.plain_surprisal);
  return sweep;
}

std::string typical_sweep_text(const TypicalSweep& sweep) {
  const auto estimate = [](const Estimate& each) {
    return fmt::format("{:.2f} ({:.2f} to {:.2f})", each.value, each.low, each.high);
  };
  std::string text = fmt::format("{:>7}  {:>5}   {:>20}   {:>20}   {:>10}   {:>9}\n", "epsilon",
                                 "delta", "speed-up", "nats per token", "KL, nats", "same draw");
  text += fmt::format("{:>14}   {:>20}   {:>20}   {:>10}   {:>9}\n",
                      fmt::format("plain at {:.2g}", sweep.temperature), "1.00",
                      estimate(sweep.plain_surprisal), "0", "1.00");
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const TypicalPoint& point = sweep.points[i];
    text +=
        fmt::format("{:>7.2f}  {:>5.2f}   {:>20}   {:>20}   {:>10.3f}   {:>9.2f}{}\n",
                    point.epsilon, point.delta, estimate(point.speedup), estimate(point.surprisal),
                    point.kl, point.agreement, i == sweep.chosen ? "  chosen" : "");
  }
  return text +
         "speed-up: over plain sampling, by turns; nats per token: -ln p of the text under the "
         "model\n";
}

}  // namespace medusa
