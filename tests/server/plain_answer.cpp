#include "tests/server/plain_answer.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/utf8.h"
#include "infer/backbone_target.h"
#include "infer/grammar/grammar.h"
#include "tests/reference/changed_logits.h"

namespace medusa::fixtures {
namespace {

using nlohmann::json;

/// The model, one row after the other.
class PlainModel {
 public:
  explicit PlainModel(const Model& loaded)
      : target_(*loaded.llama, 1, loaded.context), slot_(target_.open()) {}

  /// What follows after one more token.
  std::vector<float> after(TokenId token) {
    const CandidateTree root = root_only(token);
    const SlotTree tree{slot_, &root};
    const auto output = target_.forward({&tree, 1});
    target_.commit(slot_, std::vector<int32_t>{0});
    const auto row = logits_row(output[0].logits, 0);
    return {row.begin(), row.end()};
  }

 private:
  BackboneTarget target_;
  int32_t slot_;
};

LogitsConfig logits_of(const json& body) {
  LogitsConfig out;
  out.penalties = {body.value("presence_penalty", 0.0), body.value("frequency_penalty", 0.0),
                   body.value("repetition_penalty", 1.0)};
  const json biases = body.value("logit_bias", json::object());
  for (const auto& [id, bias] : biases.items())
    out.bias.emplace_back(std::stoi(id), bias.get<float>());
  out.allowed = body.value("allowed_token_ids", std::vector<TokenId>());
  out.min_tokens = body.value("min_tokens", 0);
  return out;
}

SamplingConfig sampling_of(const json& body) {
  return {body.value("temperature", 0.0), body.value("top_k", int64_t{0}), body.value("top_p", 1.0),
          body.value("min_p", 0.0)};
}

/// The grammar that a body asks for, if it does.
std::shared_ptr<const CompiledGrammar> grammar_of(const Model& loaded, const json& body) {
  GrammarText wanted;
  const json regex = body.value("/medusa/regex"_json_pointer, json());
  const json schema = body.value("/response_format/json_schema/schema"_json_pointer, json());
  if (regex.is_string())
    wanted = {GrammarKind::Regex, regex};
  else if (body.contains("structural_tag"))
    wanted = {GrammarKind::StructuralTag, body["structural_tag"].dump()};
  else if (schema.is_object())
    wanted = {GrammarKind::JsonSchema, schema.dump()};
  else
    return nullptr;
  GrammarVocabulary vocabulary;
  vocabulary.ends = loaded.eos;
  const Tokenizer& tokenizer = *loaded.tokenizer;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    vocabulary.bytes.push_back(tokenizer.is_special(id) ? "" : tokenizer.bytes(id));
  return make_grammar_compiler(vocabulary)->compile(wanted);
}

/// The row without what the grammar has no place for behind a text, looked at from its beginning.
void keep_inside(const CompiledGrammar& grammar, const std::vector<TokenId>& text,
                 std::vector<float>& row) {
  const auto matcher = grammar.make_matcher();
  for (const TokenId token : text) EXPECT_TRUE(matcher->accept(token)) << token;
  std::vector<int32_t> mask((row.size() + 31) / 32);
  matcher->fill_mask(mask);
  for (size_t i = 0; i < row.size(); ++i)
    if ((static_cast<uint32_t>(mask[i / 32]) >> (i % 32) & 1U) == 0)
      row[i] = -std::numeric_limits<float>::infinity();
}

}  // namespace

PlainAnswer plain_answer(const Model& loaded, const json& body) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  const auto prompt = body["prompt"].get<std::vector<TokenId>>();
  const LogitsConfig logits = logits_of(body);
  const SamplingConfig sampling = sampling_of(body);
  const Random random(body.value("seed", uint64_t{1}));
  const auto stop_tokens = body.value("stop_token_ids", std::vector<TokenId>());
  const auto stops = body.value("stop", std::vector<std::string>());
  std::vector<TokenId> ends = stop_tokens;
  if (!body.value("ignore_eos", false))
    ends.insert(ends.end(), loaded.eos.begin(), loaded.eos.end());
  const auto is_in = [](const std::vector<TokenId>& list, TokenId token) {
    return std::find(list.begin(), list.end(), token) != list.end();
  };

  const auto grammar = grammar_of(loaded, body);

  PlainAnswer out;
  PlainModel model(loaded);
  std::vector<float> row;
  for (size_t i = 0; i < prompt.size(); ++i) {
    row = model.after(prompt[i]);
    if (i + 1 < prompt.size()) out.prompt_logprobs.push_back(log_probability(row, prompt[i + 1]));
  }
  std::string bytes;      // of the text
  size_t first_stop = 0;  // where a stop text may begin
  const auto most = body.value("max_tokens", size_t{16});
  out.reason = "length";
  while (out.tokens.size() < most) {
    auto changed = reference::changed_logits(logits, ends, prompt, out.tokens, row);
    if (grammar) keep_inside(*grammar, out.tokens, changed);
    const auto position = static_cast<int64_t>(prompt.size() + out.tokens.size()) - 1;
    const TokenId token = sampling.temperature == 0 ? argmax(changed)
                                                    : draw(target_distribution(changed, sampling),
                                                           random, RandomUse::Accept, position);
    out.tokens.push_back(token);
    out.logprobs.push_back(log_probability(row, token));
    if (!tokenizer.is_special(token) && !is_in(stop_tokens, token)) bytes += tokenizer.bytes(token);
    if (std::ssize(out.tokens) <= logits.min_tokens) first_stop = bytes.size();
    size_t cut = std::string::npos;
    for (const std::string& stop : stops) cut = std::min(cut, bytes.find(stop, first_stop));
    if (cut != std::string::npos) bytes.resize(cut);
    if (is_in(ends, token) || cut != std::string::npos) {
      out.reason = "stop";
      break;
    }
    row = model.after(token);
  }
  out.text = repair_utf8(bytes);
  return out;
}

}  // namespace medusa::fixtures
