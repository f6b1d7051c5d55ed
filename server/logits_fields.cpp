#include "server/logits_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace medusa {
namespace {

constexpr size_t kMostBiased = 300;  // as OpenAI's
constexpr double kMostBias = 100;
constexpr double kMostPenalty = 2;

/// The id that a key like "50256" names; -1: none.
int64_t id_of(const std::string& key) {
  int64_t id = -1;
  const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
  return read.ec == std::errc() && read.ptr == key.data() + key.size() ? id : -1;
}

std::vector<LogitBias::Entry> read_bias(RequestFields& fields, int64_t vocab_size) {
  std::vector<LogitBias::Entry> out;
  if (!fields.has("logit_bias")) return out;
  const nlohmann::json& bias = fields.at("logit_bias");
  const std::string expected = fmt::format(
      "an object of at most {} token ids from 0 to {}, each with a number from {} to {}",
      kMostBiased, vocab_size - 1, -kMostBias, kMostBias);
  if (!bias.is_object() || bias.size() > kMostBiased) fields.refuse("logit_bias", expected);
  for (const auto& [key, value] : bias.items()) {
    const int64_t id = id_of(key);
    if (id < 0 || id >= vocab_size || !value.is_number() ||
        !(std::abs(value.get<double>()) <= kMostBias))
      fields.refuse("logit_bias", expected);
    out.emplace_back(static_cast<TokenId>(id), value.get<float>());
  }
  return out;
}

}  // namespace

LogitsConfig read_logits_fields(RequestFields& fields, const Tokenizer& tokenizer) {
  LogitsConfig out;
  PenaltyConfig& penalties = out.penalties;
  penalties.presence = fields.number("presence_penalty", -kMostPenalty, kMostPenalty).value_or(0);
  penalties.frequency = fields.number("frequency_penalty", -kMostPenalty, kMostPenalty).value_or(0);
  penalties.repetition = fields.number("repetition_penalty", 0.01, 100).value_or(1);
  out.bias = read_bias(fields, tokenizer.vocab_size());
  out.min_tokens = static_cast<int32_t>(fields.integer("min_tokens", 0, INT32_MAX).value_or(0));
  if (fields.has("allowed_token_ids")) {
    out.allowed = fields.token_ids("allowed_token_ids", tokenizer.vocab_size());
    if (out.allowed.empty()) fields.refuse("allowed_token_ids", "at least one token id");
    std::sort(out.allowed.begin(), out.allowed.end());
    out.allowed.erase(std::unique(out.allowed.begin(), out.allowed.end()), out.allowed.end());
  }
  return out;
}

}  // namespace medusa
