#include "tools/measure/layer_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/stderr_progress.h"
#include "runtime/measure/quantiles.h"
#include "runtime/measure/row_timer.h"
#include "tools/bench/statistics.h"

namespace medusa {
namespace {

constexpr int64_t kTried = 6;  // layers tried in each round
constexpr int32_t kMostDrafts = 16;
constexpr int kRepeats = 9;

/// Texts whose next tokens the backbone has already chosen.
class AgreementMeter {
 public:
  AgreementMeter(Llama& llama, std::span<const AnsweredText> texts)
      : llama_(llama), cache_(llama.make_cache(1, longest(texts))), texts_(texts) {
    for (const AnsweredText& text : texts_) {
      MEDUSA_ASSERT(text.answer_start >= 1 && text.answer_start < std::ssize(text.tokens),
                    text.answer_start, text.tokens.size());
      choices_.push_back(first_choices(text, {}));
      positions_ += choices_.back().numel();
    }
  }

  /// @param layers  ascending; those that draft.
  double agreement(std::span<const int32_t> layers) {
    int64_t same = 0;
    for (size_t i = 0; i < texts_.size(); ++i)
      same += (first_choices(texts_[i], layers) == choices_[i]).sum().item<int64_t>();
    return static_cast<double>(same) / static_cast<double>(positions_);
  }

 private:
  static int64_t longest(std::span<const AnsweredText> texts) {
    size_t most = 1;
    for (const AnsweredText& text : texts) most = std::max(most, text.tokens.size());
    return static_cast<int64_t>(most);
  }

  /// In place of each token of the answer, which the row before it chooses: [answer length].
  at::Tensor first_choices(const AnsweredText& text, std::span<const int32_t> layers) {
    const int32_t slot = cache_.open();
    const Segment segment{slot, text.tokens, {}};
    const at::Tensor hidden = llama_.forward({&segment, 1}, cache_, layers);
    cache_.close(slot);
    const int64_t begin = text.answer_start - 1;
    return llama_.logits(hidden.narrow(0, begin, hidden.size(0) - 1 - begin)).argmax(-1);
  }

  Llama& llama_;
  KvCache cache_;
  std::span<const AnsweredText> texts_;
  std::vector<at::Tensor> choices_;  // of each text
  int64_t positions_ = 0;
};

/// Seconds of one row through these layers and the LM head behind 64 tokens, a median.
double time_row(Llama& llama, std::span<const int32_t> layers) {
  KvCache cache = llama.make_cache(1, 128);
  const int32_t slot = cache.open();
  llama.prefill(slot, std::vector<TokenId>(64, 1), cache);
  const std::vector<TokenId> token{1};
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    const auto began = std::chrono::steady_clock::now();
    const Segment segment{slot, token, {}};
    const at::Tensor choice = llama.logits(llama.forward({&segment, 1}, cache, layers)).argmax(-1);
    choice.item<int64_t>();  // a GPU has begun by now, and has to end
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return median(std::move(seconds));
}

bool contains(const std::vector<int64_t>& layers, int64_t layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

/// All layers but these.
std::vector<int32_t> without(const std::vector<int64_t>& skip, int64_t num_layers) {
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < num_layers; ++layer)
    if (!contains(skip, layer)) layers.push_back(layer);
  return layers;
}

/// What is left of the agreement without a layer.
struct Harm {
  int64_t layer;
  double agreement;
};

/// Sets of skipped layers, each one layer larger than the one before.
class Search {
 public:
  Search(AgreementMeter& meter, int64_t num_layers)
      : meter_(meter),
        num_layers_(num_layers),
        progress_(stderr_progress(), "search layers", "sets", num_sets(num_layers)) {
    for (int64_t layer = 0; layer < num_layers_ && !interrupted(); ++layer)
      alone_.push_back({layer, tried({layer})});
    std::stable_sort(alone_.begin(), alone_.end(),
                     [](const Harm& a, const Harm& b) { return a.agreement > b.agreement; });
  }

  LayerChoice run(const LayerCosts& costs) {
    LayerChoice best;
    std::vector<int64_t> skip;
    while (std::ssize(skip) < num_layers_ - 1 && !interrupted()) {
      const Harm next = least_harm(skip);
      skip.push_back(next.layer);
      const double cost = 1 - costs.layer * static_cast<double>(skip.size());
      LayerChoice choice = expected_gain(next.agreement, cost, costs.pass);
      choice.skip = skip;
      if (best.skip.empty() || choice.speedup > best.speedup) best = choice;
    }
    std::sort(best.skip.begin(), best.skip.end());
    progress_.finish();
    return best;
  }

 private:
  /// Each layer alone, then a round of tries for each size from two on.
  static int64_t num_sets(int64_t num_layers) {
    int64_t sets = num_layers;
    for (int64_t size = 2; size < num_layers; ++size)
      sets += std::min(kTried, num_layers - size + 1);
    return sets;
  }

  double tried(const std::vector<int64_t>& skip) {
    const double agreement = meter_.agreement(without(skip, num_layers_));
    progress_.update(++sets_);
    return agreement;
  }

  Harm least_harm(const std::vector<int64_t>& skip) {
    Harm best{-1, -1};
    int64_t candidates = 0;
    for (const Harm& each : alone_) {
      if (contains(skip, each.layer)) continue;
      std::vector<int64_t> more = skip;
      more.push_back(each.layer);
      const double agreement = skip.empty() ? each.agreement : tried(more);
      if (agreement > best.agreement) best = {each.layer, agreement};
      if (++candidates == kTried) break;
    }
    return best;
  }

  AgreementMeter& meter_;
  int64_t num_layers_;
  Progress progress_;
  int64_t sets_ = 0;
  std::vector<Harm> alone_;  // the least harmful first
};

}  // namespace

LayerCosts time_layers(Llama& llama) {
  const int64_t num_layers = llama.config().num_layers;
  if (num_layers < 2)
    throw UserError(
        "backbone.model: it has 1 layer, expected at least 2, of which some may be left out; use "
        "another drafter than layer_skip");
  const std::vector<int32_t> all = without({}, num_layers);
  const double whole = time_row(llama, all);
  const double one = time_row(llama, std::span(all).first(1));
  return {(whole - one) / (whole * static_cast<double>(num_layers - 1)),
          relative_cost(time_rows(llama))};
}

LayerChoice expected_gain(double agreement, double draft_cost, const StepCost& pass_cost) {
  LayerChoice best;
  best.agreement = agreement;
  best.cost = draft_cost;
  best.speedup = 0;
  double tokens = 1, all_right = 1;
  for (int32_t n = 1; n <= kMostDrafts; ++n) {
    all_right *= agreement;
    tokens += all_right;
    const double speedup = tokens / (n * draft_cost + pass_cost(n + 1));
    if (speedup <= best.speedup) continue;
    best.speedup = speedup;
    best.num_draft = n;
  }
  return best;
}

LayerChoice search_layers(Llama& llama, std::span<const AnsweredText> texts,
                          const LayerCosts& costs) {
  const int64_t num_layers = llama.config().num_layers;
  MEDUSA_ASSERT(num_layers >= 2 && !texts.empty(), num_layers, texts.size());
  AgreementMeter meter(llama, texts);
  LayerChoice choice = Search(meter, num_layers).run(costs);
  choice.backbone = llama.weights().fingerprint;
  return choice;
}

}  // namespace medusa
