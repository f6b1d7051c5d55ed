#include "train/samples/hidden_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kChunk = 128;  // tokens of one pass

int64_t longest_sample(const DatasetReader& dataset) {
  size_t longest = 1;
  for (int64_t i = 0; i < dataset.size(); ++i)
    longest = std::max(longest, dataset.tokens(i).size());
  return static_cast<int64_t>(longest);
}

/// States at all tokens but the last, from which nothing is drafted.
at::Tensor run_tokens(std::span<const TokenId> tokens, Llama& llama, KvCache& cache, int32_t slot) {
  std::vector<at::Tensor> parts;
  const auto length = static_cast<int64_t>(tokens.size()) - 1;
  for (int64_t begin = 0; begin < length; begin += kChunk) {
    const int64_t n = std::min(kChunk, length - begin);
    const Segment chunk{
        slot, tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(n)), {}};
    parts.push_back(llama.forward({&chunk, 1}, cache).to(at::kCPU, at::kBFloat16, false, true));
    std::vector<int32_t> rows(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    cache.commit(slot, rows);
  }
  return at::cat(parts);
}

}  // namespace

HiddenSource offline_hidden(const DatasetReader& dataset) {
  return [&dataset](int64_t sample) {
    const auto rows = static_cast<int64_t>(dataset.answer(sample).size());
    at::Tensor hidden = at::empty({rows, dataset.info().hidden_size}, at::kBFloat16);
    dataset.read_hidden(
        sample, {static_cast<uint16_t*>(hidden.data_ptr()), static_cast<size_t>(hidden.numel())});
    return hidden;
  };
}

HiddenSource online_hidden(const DatasetReader& dataset, Llama& llama) {
  const auto cache =
      std::make_shared<KvCache>(llama.make_cache(1, longest_sample(dataset) + kChunk));
  return [&dataset, &llama, cache](int64_t sample) {
    const int32_t slot = cache->open();
    const at::Tensor all = run_tokens(dataset.tokens(sample), llama, *cache, slot);
    cache->close(slot);
    return all.slice(0, dataset.answer_start(sample) - 1);
  };
}

HiddenSource recorded_hidden(const DatasetReader& dataset, Llama* llama) {
  const HiddenSource offline = offline_hidden(dataset);
  if (dataset.has_hidden()) return offline;
  MEDUSA_ASSERT(llama != nullptr, dataset.num_hidden(), dataset.size());
  const HiddenSource online = online_hidden(dataset, *llama);
  return [&dataset, offline, online](int64_t sample) {
    return dataset.has_hidden(sample) ? offline(sample) : online(sample);
  };
}

}  // namespace medusa
