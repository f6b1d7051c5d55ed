#include "tools/layer_search.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "data/dataset_reader.h"
#include "data/sample_order.h"
#include "tools/check_dataset.h"
#include "tools/row_timer.h"

namespace medusa {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kPositions = 384;    // that agreement is measured on
constexpr int64_t kSampleTokens = 96;  // of one text
constexpr size_t kTried = 6;           // layers tried in each round
constexpr int32_t kMostDrafts = 16;
constexpr int kRepeats = 9;

/// Texts whose next tokens the backbone has already chosen.
class AgreementMeter {
 public:
  AgreementMeter(Llama& llama, const DatasetReader& dataset, const std::vector<int64_t>& samples)
      : llama_(llama), cache_(llama.make_cache(1, kSampleTokens)) {
    for (const int64_t sample : samples) {
      if (static_cast<int64_t>(texts_.size()) * kSampleTokens >= kPositions) break;
      const auto tokens = dataset.tokens(sample);
      const auto n = std::min<size_t>(tokens.size(), kSampleTokens);
      texts_.emplace_back(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
    }
    for (const auto& text : texts_) choices_.push_back(first_choices(text, {}));
  }

  double agreement(const std::vector<int32_t>& layers) {
    int64_t same = 0, all = 0;
    for (size_t i = 0; i < texts_.size(); ++i) {
      const at::Tensor choices = first_choices(texts_[i], layers);
      same += (choices == choices_[i]).sum().item<int64_t>();
      all += choices.size(0);
    }
    return static_cast<double>(same) / static_cast<double>(all);
  }

 private:
  at::Tensor first_choices(const std::vector<TokenId>& text, std::span<const int32_t> layers) {
    const int32_t slot = cache_.open();
    const Segment segment{slot, text, {}};
    at::Tensor choices = llama_.logits(llama_.forward({&segment, 1}, cache_, layers)).argmax(-1);
    cache_.close(slot);
    return choices;
  }

  Llama& llama_;
  KvCache cache_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<at::Tensor> choices_;  // of each text: [tokens]
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
    llama.logits(llama.forward({&segment, 1}, cache, layers)).argmax(-1);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return seconds[kRepeats / 2];
}

/// All layers but these.
std::vector<int32_t> without(const std::vector<int64_t>& skip, int64_t num_layers) {
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < num_layers; ++layer)
    if (std::find(skip.begin(), skip.end(), layer) == skip.end()) layers.push_back(layer);
  return layers;
}

/// Layers in the order of how little their absence harms.
struct Harm {
  int64_t layer;
  double agreement;  // without it
};

/// The search itself: sets of skipped layers, each one layer larger than the one before.
class Search {
 public:
  Search(Llama& llama, AgreementMeter& meter)
      : meter_(meter),
        num_layers_(llama.config().num_layers),
        pass_cost_(relative_cost(time_rows(llama))),
        progress_("search layers", "sets", num_layers_ + (num_layers_ - 2) * kTriedSigned) {
    const std::vector<int32_t> all = without({}, num_layers_);
    const double whole = time_row(llama, all);
    const double one = time_row(llama, std::span(all).first(1));
    const double layer = (whole - one) / static_cast<double>(num_layers_ - 1);
    layer_share_ = layer / whole;
  }

  LayerChoice run() {
    for (int64_t layer = 0; layer < num_layers_; ++layer) alone_.push_back({layer, tried({layer})});
    std::stable_sort(alone_.begin(), alone_.end(),
                     [](const Harm& a, const Harm& b) { return a.agreement > b.agreement; });
    LayerChoice best;
    std::vector<int64_t> skip;
    while (std::ssize(skip) < num_layers_ - 1 && !interrupted()) {
      const Harm next = least_harm(skip);
      skip.push_back(next.layer);
      const double cost = 1 - layer_share_ * static_cast<double>(skip.size());
      LayerChoice choice = expected_gain(next.agreement, cost, pass_cost_);
      choice.skip = skip;
      if (best.skip.empty() || choice.speedup > best.speedup) best = choice;
    }
    std::sort(best.skip.begin(), best.skip.end());
    progress_.finish();
    return best;
  }

 private:
  static constexpr auto kTriedSigned = static_cast<int64_t>(kTried);

  double tried(const std::vector<int64_t>& skip) {
    const double agreement = meter_.agreement(without(skip, num_layers_));
    progress_.update(++sets_);
    return agreement;
  }

  Harm least_harm(const std::vector<int64_t>& skip) {
    Harm best{-1, -1};
    size_t candidates = 0;
    for (const Harm& each : alone_) {
      if (std::find(skip.begin(), skip.end(), each.layer) != skip.end()) continue;
      std::vector<int64_t> more = skip;
      more.push_back(each.layer);
      const double agreement = tried(more);
      if (agreement > best.agreement) best = {each.layer, agreement};
      if (++candidates == kTried) break;
    }
    return best;
  }

  AgreementMeter& meter_;
  int64_t num_layers_;
  StepCost pass_cost_;
  double layer_share_ = 0;  // of a layer in a plain step
  Progress progress_;
  int64_t sets_ = 0;
  std::vector<Harm> alone_;
};

}  // namespace

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

LayerChoice search_layers(const RunConfig& config, Llama& llama) {
  const DatasetReader dataset(config.dataset_folder());
  check_dataset(dataset, config, llama.weights().fingerprint);
  SampleSplit split =
      split_samples(Random(config.seed), dataset.size(), config.train.config.validation_fraction);
  AgreementMeter meter(llama, dataset, split.validation.empty() ? split.train : split.validation);
  LayerChoice choice = Search(llama, meter).run();
  choice.backbone = llama.weights().fingerprint;
  return choice;
}

void write_layer_choice(const std::filesystem::path& file, const LayerChoice& choice) {
  const nlohmann::ordered_json out{
      {"format", kLayersFormat},       {"version", kVersion},
      {"backbone", choice.backbone},   {"skip", choice.skip},
      {"agreement", choice.agreement}, {"cost_of_a_drafted_token", choice.cost},
      {"num_draft", choice.num_draft}, {"expected_speedup", choice.speedup}};
  write_file(file, out.dump(2) + "\n");
}

LayerChoice read_layer_choice(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    throw UserError(
        fmt::format("{}: not found, expected the layers that drafting may skip; run medusa "
                    "calibrate --layers, or "
                    "list them in generate.layer_skip.skip",
                    file.string()));
  LayerChoice choice;
  try {
    const nlohmann::json in = nlohmann::json::parse(read_file(file));
    if (in.at("format") != kLayersFormat || in.at("version") != kVersion)
      throw UserError(fmt::format(
          "{}: format {} version {}, expected {} version {}; run medusa calibrate --layers again",
          file.string(), in.at("format").dump(), in.at("version").dump(), kLayersFormat, kVersion));
    in.at("backbone").get_to(choice.backbone);
    in.at("skip").get_to(choice.skip);
    in.at("agreement").get_to(choice.agreement);
    in.at("cost_of_a_drafted_token").get_to(choice.cost);
    in.at("num_draft").get_to(choice.num_draft);
    in.at("expected_speedup").get_to(choice.speedup);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format(
        "{}: cannot be read ({}), expected what medusa calibrate --layers wrote; run it again",
        file.string(), error.what()));
  }
  return choice;
}

LayerChoice read_layer_choice(const std::filesystem::path& file, const std::string& backbone) {
  LayerChoice choice = read_layer_choice(file);
  if (choice.backbone != backbone)
    throw UserError(fmt::format(
        "{}: was measured on model {}, the model given is {}; run medusa calibrate --layers again",
        file.string(), short_fingerprint(choice.backbone), short_fingerprint(backbone)));
  return choice;
}

}  // namespace medusa
