#include "infer/draft_models/skipping_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace medusa {

class SkippingModel::Sequence : public DraftSequence {
 public:
  explicit Sequence(SkippingModel& model) : model_(model) {}

  int64_t max_rows() const override { return model_.target_.max_rows(); }
  void begin(std::span<const TokenId> /*prompt*/) override {}
  at::Tensor extend(const DraftContext& context, const CandidateTree& tree,
                    int32_t first) override {
    return model_.target_.draft({context.slot, tree.tokens, tree.parents, first}, model_.layers_);
  }
  void keep(std::span<const int32_t> /*path*/) override {}

 private:
  SkippingModel& model_;
};

SkippingModel::SkippingModel(BackboneTarget& target, const std::vector<int64_t>& skip)
    : target_(target) {
  const int64_t num_layers = target.llama().config().num_layers;
  check_skipped_layers(skip, num_layers);
  for (int32_t layer = 0; layer < num_layers; ++layer)
    if (std::find(skip.begin(), skip.end(), layer) == skip.end()) layers_.push_back(layer);
}

std::unique_ptr<DraftSequence> SkippingModel::open() { return std::make_unique<Sequence>(*this); }

void check_skipped_layers(const std::vector<int64_t>& skip, int64_t num_layers) {
  for (auto layer = skip.begin(); layer != skip.end(); ++layer) {
    if (*layer < 0 || *layer >= num_layers)
      throw UserError(fmt::format(
          "generate.layer_skip.skip: layer {}, expected layers from 0 to {}; correct the list",
          *layer, num_layers - 1));
    if (std::find(skip.begin(), layer, *layer) != layer)
      throw UserError(fmt::format(
          "generate.layer_skip.skip: layer {} is listed twice, expected each layer once; remove "
          "one",
          *layer));
  }
  if (static_cast<int64_t>(skip.size()) >= num_layers)
    throw UserError(fmt::format(
        "generate.layer_skip.skip: all {} layers are skipped, expected at least one that runs; "
        "shorten the list",
        num_layers));
}

}  // namespace medusa
