#include "tools/measure/dtype_quality.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/stderr_progress.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "runtime/measure/quantiles.h"
#include "tools/bench/bench.h"
#include "tools/measure/acceptance.h"
#include "tools/measure/follower.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

struct WrittenAnswer {
  std::vector<TokenId> prompt, answer;
};

std::vector<WrittenAnswer> write_answers(const RunConfig& config, const Model& model,
                                         BackboneTarget& target,
                                         const std::vector<Prompt>& questions, int64_t limit) {
  const std::vector<Prompt> asked = fitting_questions(questions, limit, model);
  InferConfig none = config.generate.infer;
  none.drafter = DrafterKind::None;
  const DrafterFactory plain = make_drafter_factory(none, {});
  const DecodeLimits limits{.max_new_tokens = none.max_new_tokens, .eos = model.eos};
  std::vector<WrittenAnswer> written;
  Progress progress(stderr_progress(), "float32 answers", "questions",
                    static_cast<int64_t>(asked.size()));
  for (const Prompt& question : asked) {
    if (interrupted()) break;
    std::vector<TokenId> prompt = model.encode(question.messages);
    GreedyAnswer answer = decode_greedy(target, plain, prompt, limits, /*keep_hidden=*/false);
    if (interrupted()) break;  // it was cut off
    written.push_back({std::move(prompt), std::move(answer.tokens)});
    progress.update(static_cast<int64_t>(written.size()));
  }
  progress.finish();
  return written;
}

void follow(const WrittenAnswer& text, BackboneTarget& reference, BackboneTarget& other,
            LogitDistance& distance) {
  Follower expected(reference, text.prompt), found(other, text.prompt);
  distance.begin_answer();
  const std::span<const TokenId> all(text.answer);
  const size_t at_once = Follower::most_at_once(other.llama());
  for (size_t begin = 0; begin < all.size(); begin += at_once) {
    const auto tokens = all.subspan(begin, std::min(at_once, all.size() - begin));
    distance.add(expected.predict(tokens), found.predict(tokens), tokens);
  }
}

DtypeQuality compare_dtype(BackboneSection config, DtypeKind dtype,
                           const std::vector<WrittenAnswer>& texts, BackboneTarget& reference) {
  config.dtype = dtype;
  DtypeQuality out;
  out.dtype = enum_name(dtype);
  try {
    const Model model = open_model(config);
    out.dtype = model.llama->dtype_name();
    out.kernels = model.llama->kernels();
    BackboneTarget target(*model.llama, 1, model.context);
    Progress progress(stderr_progress(), out.dtype, "answers", static_cast<int64_t>(texts.size()));
    for (const WrittenAnswer& text : texts) {
      if (interrupted()) break;
      follow(text, reference, target, out.distance);
      progress.update(out.distance.answers());
    }
    progress.finish();
  } catch (const UserError& error) {
    out.cannot_run = error.what();
  }
  return out;
}

}  // namespace

void LogitDistance::begin_answer() { parted_.push_back(false); }

void LogitDistance::add(const at::Tensor& reference, const at::Tensor& other,
                        std::span<const TokenId> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const at::Tensor expected = at::log_softmax(reference.to(at::kDouble), -1);
  const at::Tensor found = at::log_softmax(other.to(at::kDouble), -1);
  kl_ += (expected.exp() * (expected - found)).sum().item<double>();
  const at::Tensor best = other.argmax(-1);
  for (int64_t i = 0; i < count; ++i) {
    const TokenId token = tokens[static_cast<size_t>(i)];
    reference_loss_ -= expected[i][token].item<double>();
    loss_ -= found[i][token].item<double>();
    const auto choice = best[i].item<int64_t>();
    same_ += choice == token ? 1 : 0;
    if (choice == token || parted_.back()) continue;
    parted_.back() = true;
    gaps_.push_back((expected[i][token] - expected[i][choice]).item<double>());
  }
  positions_ += count;
}

double LogitDistance::reference_perplexity() const { return std::exp(share(reference_loss_)); }
double LogitDistance::perplexity() const { return std::exp(share(loss_)); }

int64_t LogitDistance::same_texts() const {
  return std::count(parted_.begin(), parted_.end(), false);
}

std::vector<double> LogitDistance::gaps() const {
  std::vector<double> sorted = gaps_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

DtypeComparison compare_dtypes(const RunConfig& config, const std::vector<DtypeKind>& dtypes,
                               const std::vector<Prompt>& questions, int64_t limit) {
  BackboneSection reference = config.backbone;
  reference.dtype = DtypeKind::Float32;
  reference.cpu = CpuIsa::Auto;  // an ISA computes in the other dtypes only
  const Model model = open_model(reference);
  BackboneTarget target(*model.llama, 1, model.context);
  const auto texts = write_answers(config, model, target, questions, limit);
  DtypeComparison out;
  for (const DtypeKind dtype : dtypes)
    if (!interrupted()) out.rows.push_back(compare_dtype(config.backbone, dtype, texts, target));
  out.complete = !interrupted();
  const auto has_answers = [](const DtypeQuality& row) { return row.distance.answers() > 0; };
  if (!out.complete && std::none_of(out.rows.begin(), out.rows.end(), has_answers))
    throw Interrupted(
        "quality: interrupted before any dtype had followed an answer, expected at least one; run "
        "it again");
  return out;
}

std::string dtype_quality_text(const DtypeComparison& comparison) {
  std::string text =
      fmt::format("{:<10}{:>12}{:>11}{:>12}{:>12}{:>16}{:>24}\n", "", "same token", "KL, nats",
                  "perplexity", "(float32)", "same text", "gap where texts part");
  for (const DtypeQuality& row : comparison.rows) {
    if (!row.cannot_run.empty()) {
      text += fmt::format("{:<10}  cannot run: {}\n", row.dtype, row.cannot_run);
      continue;
    }
    const LogitDistance& d = row.distance;
    if (d.positions() == 0) continue;
    const std::vector<double> gaps = d.gaps();
    text +=
        fmt::format("{:<10}{:>10.2f} %{:>11.5f}{:>12.4f}{:>12.4f}{:>16}{:>24}   {}\n", row.dtype,
                    100 * d.same_token(), d.kl(), d.perplexity(), d.reference_perplexity(),
                    fmt::format("{} / {}", d.same_texts(), d.answers()),
                    gaps.empty() ? "–" : fmt::format("{:.3f} to {:.3f}", median(gaps), gaps.back()),
                    row.kernels);
  }
  text +=
      "Along float32's greedy answers. Gap: how far float32's logit of its own token is above "
      "that\nof the other's, median and largest.\n";
  if (!comparison.complete) text += "interrupted: only the answers and dtypes so far\n";
  return text;
}

nlohmann::ordered_json dtype_quality_json(const DtypeComparison& comparison) {
  auto out = nlohmann::ordered_json::array();
  for (const DtypeQuality& row : comparison.rows) {
    nlohmann::ordered_json each{{"dtype", row.dtype}};
    const LogitDistance& d = row.distance;
    if (!row.cannot_run.empty()) each["cannot_run"] = row.cannot_run;
    if (d.positions() > 0) {
      each["kernels"] = row.kernels;
      each["answers"] = d.answers();
      each["positions"] = d.positions();
      each["same_token"] = d.same_token();
      each["kl_nats"] = d.kl();
      each["perplexity"] = d.perplexity();
      each["float32_perplexity"] = d.reference_perplexity();
      each["same_texts"] = d.same_texts();
      each["gaps"] = d.gaps();
    }
    out.push_back(std::move(each));
  }
  return {{"dtypes", std::move(out)}, {"complete", comparison.complete}};
}

}  // namespace medusa
