#include "data/self_distill.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "base/progress.h"

namespace medusa {
namespace {

/// FNV-1a over the ids: which child of the run's random numbers a prompt uses. Equal prompts get
/// equal answers, which is what "an answer depends on (seed, prompt)" says.
uint64_t hash_tokens(std::span<const TokenId> tokens) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const TokenId token : tokens)
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= (static_cast<uint32_t>(token) >> shift) & 0xFF;
      hash *= 0x100000001B3ULL;
    }
  return hash;
}

/// Tokens that the sequence limit leaves for the answer; 0 or less: the prompt does not fit.
int64_t room_for_answer(const DistillPrompt& prompt, const DistillLimits& limits) {
  const auto length = static_cast<int64_t>(prompt.tokens.size());
  return std::min<int64_t>(limits.max_new_tokens, limits.max_sequence - length);
}

/// Requests for the prompts whose shards are missing; those that do not fit are added as skipped.
std::vector<GenerateRequest> plan(std::span<const DistillPrompt> prompts,
                                  const DistillLimits& limits, const Random& random,
                                  DatasetWriter& writer) {
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (writer.has(index)) continue;
    const int64_t room = room_for_answer(prompts[i], limits);
    if (room <= 0) {
      writer.add(index, {});
      continue;
    }
    requests.push_back({i, prompts[i].tokens, random.child(hash_tokens(prompts[i].tokens)),
                        static_cast<int32_t>(room)});
  }
  return requests;
}

Sample make_sample(const DistillPrompt& prompt, GeneratedText text) {
  Sample sample{prompt.id, prompt.tokens, static_cast<int64_t>(prompt.tokens.size()),
                std::move(text.hidden)};
  sample.tokens.insert(sample.tokens.end(), text.tokens.begin(), text.tokens.end());
  return sample;
}

/// Counts toward the limit of answer tokens if there is one, else in prompts.
class DistillProgress {
 public:
  DistillProgress(const DatasetWriter& writer, const DistillLimits& names, int64_t num_requests,
                  ProgressFunction tell)
      : answers_(names.answers),
        by_tokens_(writer.max_answer_tokens() > 0),
        limit_(by_tokens_ ? writer.max_answer_tokens() : writer.num_own_samples()),
        start_(by_tokens_ ? writer.num_answer_tokens() : writer.num_own_samples() - num_requests),
        line_(std::move(tell), "distill", by_tokens_ ? "tokens" : names.prompts, limit_) {
    line_.start_from(start_);
  }

  void update(int64_t answers, int64_t tokens) {
    if (by_tokens_)
      line_.update(std::min(start_ + tokens, limit_), fmt::format("{} {}", answers, answers_));
    else
      line_.update(start_ + answers, rate(tokens));
  }

  void finish(int64_t answers, int64_t tokens, bool complete) {
    if (answers == 0) return;  // all was there already, and no line was shown
    line_.finish(fmt::format("{} {}, {}{}", answers, answers_, rate(tokens),
                             complete ? "" : ", interrupted"));
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  std::string rate(int64_t tokens) const {
    return fmt::format("{:.0f} tokens/s", static_cast<double>(tokens) / std::max(seconds(), 1e-9));
  }

  const char* answers_;
  bool by_tokens_;
  int64_t limit_;
  int64_t start_;
  Progress line_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace

DistillReport self_distill(std::span<const DistillPrompt> prompts, const GenerateFunction& generate,
                           const DistillLimits& limits, const Random& random, DatasetWriter& writer,
                           ProgressFunction tell) {
  MEDUSA_ASSERT(writer.num_samples() == static_cast<int64_t>(prompts.size()), writer.num_samples(),
                prompts.size());
  MEDUSA_ASSERT(limits.max_new_tokens > 0, limits.max_new_tokens);
  DistillReport report;
  report.too_long = std::count_if(prompts.begin(), prompts.end(), [&](const DistillPrompt& each) {
    return room_for_answer(each, limits) <= 0;
  });
  if (report.too_long == static_cast<int64_t>(prompts.size()))
    throw UserError(fmt::format(
        "prompts: none of the {} leaves room for an answer in a sequence of {} tokens; use shorter "
        "prompts or allow longer sequences",
        prompts.size(), limits.max_sequence));

  const std::vector<GenerateRequest> requests = plan(prompts, limits, random, writer);
  DistillProgress progress(writer, limits, std::ssize(requests), std::move(tell));
  int64_t answers = 0;
  bool stopped = writer.complete();
  const auto finished = [&](size_t request, GeneratedText text) {
    if (stopped) return false;
    ++answers;
    report.generated += static_cast<int64_t>(text.tokens.size());
    const size_t i = requests[request].index;
    writer.add(static_cast<int64_t>(i), make_sample(prompts[i], std::move(text)));
    progress.update(answers, report.generated);
    stopped = writer.complete() || interrupted();
    return !stopped;
  };
  if (!stopped) generate(requests, finished);
  MEDUSA_ASSERT(stopped || interrupted(), answers, requests.size());  // all were answered

  report.answered = writer.num_stored();
  report.answer_tokens = writer.num_answer_tokens();
  report.complete = writer.complete();
  report.seconds = progress.seconds();
  progress.finish(answers, report.generated, report.complete);
  return report;
}

std::string fingerprint_prompts(std::span<const DistillPrompt> prompts) {
  Fingerprint fingerprint;
  for (const auto& [id, tokens] : prompts) {
    fingerprint.add(static_cast<int64_t>(id.size())).add(id);
    fingerprint.add(static_cast<int64_t>(tokens.size()));
    fingerprint.add(
        {reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size() * sizeof(TokenId)});
  }
  return fingerprint.digest();
}

}  // namespace medusa
