#include "infer/cuda/device_decoder.h"

#include <algorithm>
#include <chrono>

#include "backbone/cuda/device_of_kernels.h"
#include "backbone/cuda/launch_count.h"
#include "base/check.h"
#include "base/elapsed.h"
#include "infer/text_end.h"

namespace medusa {
namespace {

constexpr int64_t kSmallestContext = 256;  // of a graph; the next ones are twice as long each

}  // namespace

DeviceLoopKernels cuda_loop_kernels() {
  return {cuda_head_kernels(), cuda_step_kernels(), cuda_runtime()};
}

PickGuesses pick_with(const StepKernels& kernels) {
  return
      [pick = kernels.top_k](const float* logits, int64_t num_rows, int64_t row_size, int32_t top_k,
                             const int32_t* token_of_row, int32_t* tokens, DeviceStream stream) {
        TopKArgs args;
        args.logits = logits;
        args.num_rows = num_rows;
        args.row_size = row_size;
        args.k = top_k;
        args.token_of_row = token_of_row;
        args.tokens = tokens;
        pick(args, stream);
      };
}

/// A sequence that is being decoded.
struct DeviceDecoder::Sequence {
  size_t index = 0;  // of the request
  int32_t slot = -1;
  DecodeRequest request;
  int64_t num_tokens = 0;  // prompt and emitted, as far as the host knows
  DecodeStats stats;
  bool more = true;
};

/// A step that was started and whose tokens have not been read.
struct DeviceDecoder::Posted {
  explicit Posted(std::unique_ptr<HostMailbox> box) : mailbox(std::move(box)) {}
  std::unique_ptr<HostMailbox> mailbox;
  std::vector<std::shared_ptr<Sequence>> sequences;  // by place, when it was started; empty: none
};

DeviceDecoder::DeviceDecoder(BackboneTarget& target, DeviceHeads* heads, const TreeShape& shape,
                             const DeviceJudge& judge, const DeviceLoopKernels& kernels)
    : target_(target),
      llama_(*target.llama().on_device()),
      kernels_(kernels),
      step_(llama_, heads, shape, judge, *kernels.steps, target.cache(), target.num_free_slots()) {
  MEDUSA_ASSERT(kernels.complete());
}

std::vector<CapturedGraph> DeviceDecoder::graphs() const {
  std::vector<CapturedGraph> out;
  for (const auto& [kind, step] : graphs_)
    if (step.graph) out.push_back(kind);
  return out;
}

void DeviceDecoder::start(size_t index, DecodeRequest request) {
  check_request(request, target_.max_rows());
  auto s = std::make_shared<Sequence>();
  s->slot = target_.open();
  open_.push_back(s);  // from here on it is closed whatever happens
  s->index = index;
  s->request = std::move(request);
  const auto prompt = std::span<const TokenId>(s->request.prompt);
  s->num_tokens = static_cast<int64_t>(prompt.size());
  at::Tensor state;
  if (prompt.size() > 1) state = target_.prefill(s->slot, prompt.first(prompt.size() - 1));
  step_.enter(static_cast<int32_t>(open_.size()) - 1, s->slot, s->num_tokens - 1, prompt.back(),
              state, s->request.random.seed());
}

/// Starts a step of all open sequences, captured before if there was one like it.
void DeviceDecoder::replay(Posted& posted) {
  // The host knows the lengths before the step that may still be running.
  int64_t most = 0;
  for (const auto& s : open_) most = std::max(most, s->num_tokens);
  most += 2 * step_.max_emitted() + step_.num_nodes();
  CapturedGraph key{static_cast<int32_t>(open_.size()), step_.num_nodes(), kSmallestContext};
  while (key.max_context < most) key.max_context *= 2;
  key.max_context = std::min(key.max_context, target_.cache().capacity());

  if (generation_ != llama_.generation()) graphs_.clear();  // a long prompt moved the buffers
  generation_ = llama_.generation();
  // The first step of its kind runs kernel by kernel: to load one is not allowed while a graph is
  // captured.
  const auto [found, is_first] = graphs_.try_emplace(key);
  std::unique_ptr<DeviceGraph>& graph = found->second.graph;
  if (is_first) {
    const int64_t before = num_started_kernels;
    step_.run(key.num_sequences, key.max_context, nullptr);
    found->second.num_kernels = num_started_kernels - before;
  } else {
    if (!graph)
      graph = kernels_.runtime->capture([this, key](DeviceStream stream) {
        step_.run(key.num_sequences, key.max_context, stream);
      });
    graph->replay();
  }
  posted.mailbox->post(step_.emitted().data_ptr());
  posted.sequences = open_;
}

/// Reads the tokens of a step and emits them as far as each text goes on.
void DeviceDecoder::take(Posted& posted) {
  posted.mailbox->wait();
  const auto* words = static_cast<const int32_t*>(posted.mailbox->data());
  for (const auto& s : std::exchange(posted.sequences, {})) {
    const int32_t count = words[0];
    const int32_t* tokens = words + 1;
    words += 1 + step_.max_emitted();
    if (!s->more) continue;  // it ended in the step before
    MEDUSA_ASSERT(count >= 1 && count <= step_.max_emitted(), count);
    size_t run = 0;
    for (int32_t i = 0; i < count && s->more; ++i) {
      ++run;
      ++s->num_tokens;
      ++s->stats.emitted;
      const bool wanted = s->request.emit({tokens[i], nullptr, 0});
      const auto finish = finish_reason(s->request.limits, tokens[i], s->stats.emitted,
                                        s->num_tokens, wanted, target_.max_rows());
      if (!finish) continue;
      s->stats.finish = *finish;
      s->more = false;
    }
    ++s->stats.steps;
    s->stats.proposed += step_.num_nodes() - 1;
    s->stats.accepted += count - 1;
    if (s->stats.emitted_per_step.size() <= run) s->stats.emitted_per_step.resize(run + 1);
    ++s->stats.emitted_per_step[run];
  }
}

/// Gives the slots of ended sequences back; the last places move to the gaps.
void DeviceDecoder::drop_finished() {
  for (size_t place = 0; place < open_.size();) {
    if (open_[place]->more) {
      ++place;
      continue;
    }
    target_.close(open_[place]->slot);
    const size_t last = open_.size() - 1;
    if (place != last) {
      step_.move(static_cast<int32_t>(last), static_cast<int32_t>(place));
      open_[place] = std::move(open_[last]);
    }
    open_.pop_back();
  }
}

DecodeTimes DeviceDecoder::decode(const std::function<std::optional<DecodeRequest>()>& next,
                                  const std::function<bool(size_t, const DecodeStats&)>& finished) {
  MEDUSA_ASSERT(target_.num_free_slots() > 0 && open_.empty());
  struct CloseAll {  // also when something throws
    DeviceDecoder& decoder;
    ~CloseAll() {
      for (const auto& s : decoder.open_) decoder.target_.close(s->slot);
      decoder.open_.clear();
    }
  };
  const size_t bytes = static_cast<size_t>(step_.emitted().nbytes());
  const DeviceOfKernels guard(step_.emitted().device());
  DecodeTimes times;
  const CloseAll close_all{*this};
  Posted running(kernels_.runtime->make_mailbox(bytes)),
      read(kernels_.runtime->make_mailbox(bytes));
  size_t taken = 0;
  for (bool exhausted = false;;) {
    auto clock = std::chrono::steady_clock::now();
    while (!exhausted && target_.num_free_slots() > 0) {
      auto request = next();
      exhausted = !request;
      if (request) start(taken++, std::move(*request));
    }
    times.prefill_s += seconds_since(clock);

    clock = std::chrono::steady_clock::now();
    std::swap(running, read);  // `read` is the step that was started last
    if (!open_.empty()) replay(running);
    if (read.sequences.empty() && open_.empty()) return times;
    if (read.sequences.empty()) continue;
    const std::vector<std::shared_ptr<Sequence>> were_open = open_;
    take(read);
    times.verify_s += seconds_since(clock);
    drop_finished();
    for (const auto& s : were_open)
      if (!s->more && !finished(s->index, s->stats)) return times;
  }
}

}  // namespace medusa
