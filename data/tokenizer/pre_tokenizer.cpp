#include "data/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <deque>
#include <map>

#include "base/error.h"

namespace medusa {
namespace {

// What each model family cuts at is a fact of its training. Written here as the families publish
// them, for a regular expression engine with Unicode classes.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kEachDigit = R"(\p{N})";
constexpr const char* kSymbols = R"([\p{P}$+<=>^~|]+)";

using Patterns = std::vector<const char*>;

const std::map<std::string_view, Patterns>& named_patterns() {
  static const Patterns gpt2 = {kGpt2};
  static const Patterns digits = {kEachDigit, kGpt2};
  static const Patterns llama3 = {kLlama3};
  static const Patterns qwen2 = {kQwen2};
  static const std::map<std::string_view, Patterns> patterns = {
      {"gpt-2", gpt2},       {"mpt", gpt2},
      {"olmo", gpt2},        {"jais", gpt2},
      {"smollm", digits},    {"starcoder", digits},
      {"refact", digits},    {"command-r", digits},
      {"codeshell", digits}, {"llama-bpe", llama3},
      {"llama3", llama3},    {"llama-v3", llama3},
      {"falcon3", llama3},   {"dbrx", llama3},
      {"smaug-bpe", llama3}, {"qwen2", qwen2},
      {"stablelm2", qwen2},  {"deepseek-r1-qwen", qwen2},
      {"tekken", {kTekken}}, {"default", {kSymbols, kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return patterns;
}

}  // namespace

std::vector<std::string> PreTokenizer::patterns_of(std::string_view name,
                                                   const std::string& source) {
  const auto& all = named_patterns();
  const auto found = all.find(name);
  if (found == all.end()) {
    std::string known;
    for (const auto& [other, patterns] : all)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", other);
    throw UserError(fmt::format(
        "{}: tokenizer.ggml.pre is '{}', expected one of {}; use a model with one of these", source,
        name, known));
  }
  return {found->second.begin(), found->second.end()};
}

PreTokenizer PreTokenizer::named(std::string_view name, const std::string& source) {
  PreTokenizer result;
  for (const std::string& pattern : patterns_of(name, source))
    result.add_split({Regex(pattern, source)});
  return result;
}

void PreTokenizer::add_byte_level(bool use_pattern, bool prefix_space, const std::string& source) {
  if (use_pattern || prefix_space)
    steps_.push_back({{Regex(kGpt2, source)}, prefix_space, !use_pattern});
}

/// One call of split(): working memory for each step.
struct PreTokenizer::Run {
  const std::vector<Step>& steps;
  const std::function<void(std::string_view)>& piece;
  std::deque<Regex::Scratch> scratch;

  void cut(size_t step, std::string_view text) {
    if (step == steps.size()) {
      if (!text.empty()) piece(text);
    } else if (steps[step].prefix_space && !text.empty() && text[0] != ' ') {
      cut_at_matches(step, fmt::format(" {}", text));
    } else {
      cut_at_matches(step, text);
    }
  }

  void cut_at_matches(size_t step, std::string_view text) {
    if (steps[step].only_prefix) return cut(step + 1, text);
    const Split& split = steps[step].split;
    size_t at = 0;
    while (at < text.size()) {
      const auto match = split.pattern.find(text, at, scratch[step]);
      const size_t gap_end = match ? match->first : text.size();
      if (gap_end > at && !split.drop_gaps) cut(step + 1, text.substr(at, gap_end - at));
      if (!match) return;
      if (!split.drop_matches)
        cut(step + 1, text.substr(match->first, match->second - match->first));
      at = match->second;
    }
  }
};

void PreTokenizer::split(std::string_view text,
                         const std::function<void(std::string_view)>& piece) const {
  Run run{steps_, piece, {}};
  for (size_t i = 0; i < steps_.size(); ++i) run.scratch.emplace_back();
  run.cut(0, text);
}

}  // namespace medusa
