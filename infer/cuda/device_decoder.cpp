#include "infer/cuda/device_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "backbone/cuda/device_tensors.h"
#include "backbone/cuda/device_types.h"
#include "base/check.h"
#include "base/elapsed.h"
#include "base/error.h"
#include "infer/sampling.h"

namespace medusa {

DeviceLoopKernels cuda_loop_kernels() {
  return {cuda_head_kernels(), cuda_step_kernels(), cuda_runtime()};
}

PickDrafts pick_with(const StepKernels& kernels) {
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

/// A sequence from submit() to its end.
struct DeviceDecoder::Sequence : DecodedSequence {
  int64_t num_tokens = 0;  // prompt and emitted, as far as the host knows
};

/// A step that was started and whose tokens have not been read.
struct DeviceDecoder::InFlightStep {
  HostBuffer* buffer = nullptr;                      // not owned
  std::vector<std::shared_ptr<Sequence>> sequences;  // by place, when it was started; empty: none
};

DeviceDecoder::DeviceDecoder(BackboneTarget& target, std::shared_ptr<DeviceHeads> heads,
                             const TreeShape& shape, const VerifyParameters& verify,
                             const DeviceLoopKernels& kernels)
    : target_(target),
      llama_(*as_cuda(target.llama().backend())),
      kernels_(kernels),
      heads_(std::move(heads)),
      step_(llama_, heads_.get(), shape, verify, *kernels.steps, target.cache(),
            target.num_free_slots()),
      graphs_(*kernels.runtime),
      running_(std::make_unique<InFlightStep>()),
      read_(std::make_unique<InFlightStep>()) {
  MEDUSA_ASSERT(kernels.complete());
  for (auto& each : buffers_)
    each = kernels_.runtime->make_host_buffer(static_cast<size_t>(step_.bytes_emitted()));
  step_.emit_to(static_cast<int32_t*>(buffers_[0]->on_device()),
                static_cast<int32_t*>(buffers_[1]->on_device()));
}

DeviceDecoder::~DeviceDecoder() {
  try {
    cancel_all();
  } catch (const std::exception&) {
    // A GPU that has failed writes nothing any more.
  }
}

/// What a GPU still writes must have somewhere to go.
void DeviceDecoder::wait_for_in_flight() {
  for (InFlightStep* each : {running_.get(), read_.get()})
    if (!std::exchange(each->sequences, {}).empty()) each->buffer->wait();
}

int64_t DeviceDecoder::num_free() const {
  return std::max<int64_t>(0, target_.num_free_slots() - num_waiting());
}

RequestId DeviceDecoder::submit(DecodeRequest request) {
  sequences_.expect_no_step("submit");
  check_request(request, target_.max_rows(), target_.total_rows());
  if (request.rule || request.make_drafter || !request.processors.empty() || request.on_prompt)
    throw UserError(
        "the request has a drafter, a rule or a use of the logits of its own, expected those that "
        "the GPU's steps were captured with; leave them out or decode it with the host's loop "
        "(graphs: false)");
  if (request.watch)
    throw UserError(
        "the request watches its steps, whose trees stay on the GPU; expected none who watches; "
        "leave it out or decode with the host's loop (graphs: false)");
  return sequences_.add(std::move(request));
}

std::string DeviceDecoder::report() const {
  std::string text;
  for (const CapturedGraph& each : graphs())
    text += fmt::format("graph: {} sequence{} of {} node{} within {} tokens, {} kernels\n",
                        each.num_sequences, each.num_sequences == 1 ? "" : "s", each.num_nodes,
                        each.num_nodes == 1 ? "" : "s", each.max_context, num_kernels(each));
  return text;
}

/// Begins a sequence that has just got a slot, in the last place.
void DeviceDecoder::start(Sequence& s) {
  const auto prompt = std::span<const TokenId>(s.request.prompt);
  s.num_tokens = static_cast<int64_t>(prompt.size());
  at::Tensor state;
  if (prompt.size() > 1) state = target_.prefill(s.slot, prompt.first(prompt.size() - 1));
  step_.enter(static_cast<int32_t>(num_running()) - 1, s.slot, s.num_tokens - 1, prompt.back(),
              state, s.request.random.seed());
}

/// Starts a step of all open sequences, captured before if there was one like it.
void DeviceDecoder::replay(InFlightStep& in_flight) {
  // The host knows the lengths before the step that may still be running.
  int64_t most = 0;
  for (const auto& s : sequences_.running) most = std::max(most, s->num_tokens);
  most += 2 * step_.max_emitted() + step_.num_nodes();
  const CapturedGraph key{static_cast<int32_t>(sequences_.running.size()), step_.num_nodes(),
                          captured_context(most, target_.cache().capacity())};

  if (!std::exchange(turn_is_set_, false)) step_.set_turn(turn_);
  // A long prompt moves the buffers: then another generation begins.
  graphs_.run(key, llama_.generation(), [this, key](DeviceStream stream) {
    step_.run(key.num_sequences, key.max_context, stream);
  });
  in_flight.buffer = buffers_[turn_].get();
  in_flight.buffer->mark();
  in_flight.sequences = sequences_.running;
  turn_ = 1 - turn_;
  turn_is_set_ = true;
}

/// Emits the tokens of a step as far as the text goes on.
void DeviceDecoder::take_tokens(Sequence& s, std::span<const int32_t> tokens) {
  size_t run = 0;
  while (run < tokens.size() && s.more) {
    const TokenId token = tokens[run];
    ++s.num_tokens;
    ++s.stats.emitted;
    const bool wanted = s.request.emit({token, nullptr, 0, run == 0});
    ++run;
    const auto finish = finish_reason(s.request.limits, token, s.stats.emitted, s.num_tokens,
                                      wanted, target_.max_rows());
    if (!finish) continue;
    s.stats.finish = *finish;
    s.more = false;
  }
  s.stats.count_step(run, step_.num_nodes() - 1, std::ssize(tokens) - 1, step_.max_emitted() - 1);
}

/// Reads the tokens of a step.
void DeviceDecoder::take(InFlightStep& in_flight) {
  in_flight.buffer->wait();
  const auto* words = static_cast<const int32_t*>(in_flight.buffer->data());
  for (const auto& s : std::exchange(in_flight.sequences, {})) {
    const int32_t count = words[0];
    const std::span<const int32_t> tokens(words + 1, static_cast<size_t>(std::max(count, 0)));
    words += 1 + step_.max_emitted();
    if (!s->more) continue;  // it ended in the step before
    MEDUSA_ASSERT(count == kNoToken || (count >= 1 && count <= step_.max_emitted()), count);
    try {
      if (count == kNoToken) refuse_logits();
      take_tokens(*s, tokens);
    } catch (...) {
      s->fail(std::current_exception());
    }
  }
}

/// Gives the slots of ended sequences back; the last places move to the gaps.
std::vector<FinishedRequest> DeviceDecoder::drop_ended() {
  std::vector<FinishedRequest> ended;
  for (size_t place = 0; place < sequences_.running.size();) {
    const std::shared_ptr<Sequence> s = sequences_.running[place];
    if (s->more) {
      ++place;
      continue;
    }
    target_.close(s->slot);
    const size_t last = sequences_.running.size() - 1;
    if (place != last) {
      step_.move(static_cast<int32_t>(last), static_cast<int32_t>(place));
      sequences_.running[place] = std::move(sequences_.running[last]);
    }
    sequences_.running.pop_back();
    ended.push_back({s->id, std::move(s->stats), s->error});
  }
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return ended;
}

std::optional<DecodeStats> DeviceDecoder::cancel(RequestId id) {
  sequences_.expect_no_step("cancel");
  const auto s = sequences_.running_one(id);
  if (s == nullptr) return sequences_.cancel_waiting(id);
  const KernelDeviceGuard guard(step_.device());
  DecodeStats stats = s->stats;
  s->more = false;  // the step that still runs is read without it
  drop_ended();
  stats.finish = FinishReason::Cancelled;
  return stats;
}

const DecodeStats* DeviceDecoder::stats(RequestId id) const { return sequences_.stats(id); }

void DeviceDecoder::cancel_all() {
  sequences_.waiting.clear();
  for (const auto& s : std::exchange(sequences_.running, {})) {
    s->more = false;
    target_.close(s->slot);
  }
  wait_for_in_flight();
}

std::vector<FinishedRequest> DeviceDecoder::step() {
  sequences_.expect_no_step("step");
  const SequenceList<Sequence>::Step in_step(sequences_);
  const KernelDeviceGuard guard(step_.device());
  auto began = std::chrono::steady_clock::now();
  while (!sequences_.waiting.empty() && target_.num_free_slots() > 0) {
    const int32_t slot = target_.open();
    Sequence& s = sequences_.start_next();
    s.slot = slot;
    try {
      start(s);
    } catch (...) {
      s.fail(std::current_exception());
    }
  }
  std::vector<FinishedRequest> ended = drop_ended();  // those that could not start
  times_.prefill_s += seconds_since(began);

  began = std::chrono::steady_clock::now();
  std::swap(running_, read_);  // read_ is the step that was started last
  try {
    if (!sequences_.running.empty()) replay(*running_);
  } catch (...) {
    for (const auto& s : sequences_.running) s->fail(std::current_exception());
  }
  if (!read_->sequences.empty()) take(*read_);
  for (FinishedRequest& each : drop_ended()) ended.push_back(std::move(each));
  times_.verify_s += seconds_since(began);
  return ended;
}

}  // namespace medusa
