#include "train/samples/hidden_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

int64_t longest_sample(const DatasetReader& dataset) {
  size_t longest = 1;
  for (int64_t i = 0; i < dataset.size(); ++i)
    longest = std::max(longest, dataset.tokens(i).size());
  return static_cast<int64_t>(longest);
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
  const auto cache = std::make_shared<KvCache>(llama.make_cache(1, longest_sample(dataset)));
  return [&dataset, &llama, cache](int64_t sample) {
    const auto tokens = dataset.tokens(sample);
    const int32_t slot = cache->open();
    // Nothing is drafted from the last token.
    const at::Tensor all = llama.states(slot, tokens.first(tokens.size() - 1), *cache);
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

namespace {

/// The reading thread and what it has read.
class Reader {
 public:
  Reader(HiddenSource source, std::vector<int64_t> order, int64_t most_rows)
      : source_(std::move(source)), order_(std::move(order)), most_rows_(most_rows) {
    thread_ = std::jthread([this](const std::stop_token& stop) { read_all(stop); });
  }

  at::Tensor take(int64_t sample) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_.empty() || ended_; });
    if (waiting_.empty() && failure_) std::rethrow_exception(failure_);
    MEDUSA_ASSERT(!waiting_.empty(), sample);  // more than the order has
    auto [first, states] = std::move(waiting_.front());
    MEDUSA_ASSERT(first == sample, first, sample);
    waiting_.pop_front();
    rows_ -= states.size(0);
    changed_.notify_all();
    return std::move(states);
  }

 private:
  void read_all(const std::stop_token& stop) {
    try {
      for (const int64_t sample : order_) {
        at::Tensor states = source_(sample);
        std::unique_lock lock(mutex_);
        const auto has_room = [&] {
          return waiting_.empty() || rows_ + states.size(0) <= most_rows_;
        };
        if (!changed_.wait(lock, stop, has_room)) return;
        rows_ += states.size(0);
        waiting_.emplace_back(sample, std::move(states));
        changed_.notify_all();
      }
      end({});
    } catch (...) {
      end(std::current_exception());
    }
  }

  void end(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    ended_ = true;
    changed_.notify_all();
  }

  HiddenSource source_;
  std::vector<int64_t> order_;
  int64_t most_rows_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::pair<int64_t, at::Tensor>> waiting_;
  int64_t rows_ = 0;    // of those that wait
  bool ended_ = false;  // nothing more comes
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it ends before the rest goes
};

}  // namespace

HiddenSource read_ahead(const DatasetReader& dataset, std::vector<int64_t> order,
                        HiddenSource otherwise, int64_t most_rows) {
  const auto reader =
      std::make_shared<Reader>(offline_hidden(dataset), std::move(order), most_rows);
  return [&dataset, reader, otherwise = std::move(otherwise)](int64_t sample) {
    return dataset.has_hidden(sample) ? reader->take(sample) : otherwise(sample);
  };
}

}  // namespace medusa
