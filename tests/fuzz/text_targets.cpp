#include "base/file.h"
#include "data/chat/jinja/template.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/base/gguf_builder.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_words.h"

namespace medusa::fuzz {
namespace {

const std::vector<std::string>& tokenizer_words() {
  static const std::vector<std::string> words = json_words(
      {"1e999", "\"type\"", "\"Metaspace\"", "\"Sequence\"", "\"ByteLevel\"", "\"Split\"",
       "\"Replace\"", "\"Unigram\"", "\"BPE\"", "\"byte_fallback\"", "\"unk_token\"", "\"Regex\"",
       "(a+)+", "\\u2581", "\"normalized\"", "\"Prepend\"", "\"NFKC\""});
  return words;
}

constexpr const char* kByteLevel = R"({"added_tokens": [
  {"id": 4, "content": "<end>", "special": true},
  {"id": 5, "content": "<bos>", "special": true, "lstrip": true, "normalized": true}],
 "normalizer": {"type": "NFC"},
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<bos>"}}]},
 "model": {"type": "BPE", "ignore_merges": true, "vocab": {"a": 0, "b": 1, "aa": 2, "ab": 3},
  "merges": ["a a", ["a", "b"]]}})";
constexpr const char* kLlama = R"({"added_tokens": [
  {"id": 0, "content": "<unk>", "special": true}, {"id": 6, "content": "<t>", "normalized": true}],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
 "pre_tokenizer": null,
 "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
  "vocab": {"<unk>": 0, "<0x0A>": 1, "▁": 2, "a": 3, "b": 4, "▁a": 5}, "merges": ["▁ a"]}})";
constexpr const char* kUnigram = R"({"added_tokens": [],
 "normalizer": {"type": "NFKC"},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
 "model": {"type": "Unigram", "unk_id": 0,
  "vocab": [["<unk>", 0.0], ["▁", -2.5], ["a", -3], ["▁ab", -1.5], ["b", -4]]}})";

/// Opens a tokenizer and takes a text there and back.
void run_tokenizer(const std::string& path) {
  const auto tokenizer = load_tokenizer(path);
  const std::string text = "ab  aab <end>a<t>\n12345 \u00e9\uFB01 \xFF<0x0A>";
  for (const bool special : {false, true})
    (void)tokenizer->decode(tokenizer->encode(text, special));
  (void)tokenizer->fingerprint();
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
std::string varint_field(uint32_t field, uint64_t value) {
  std::string out;
  append_varint(out, field << 3);
  append_varint(out, value);
  return out;
}
std::string bytes_field(uint32_t field, const std::string& bytes) {
  std::string out;
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  return out + bytes;
}

/// A SentencePiece model with every type of piece.
/// @param type  1 unigram, 2 BPE.
std::string model_seed(uint64_t type, const std::string& character_map) {
  const std::pair<const char*, uint64_t> pieces[] = {
      {"<unk>", 2},  {"<s>", 3}, {"</s>", 3}, {"<t>", 4},     {"zz", 5}, {"<0x0A>", 6},
      {"\u2581", 1}, {"a", 1},   {"b", 1},    {"\u2581a", 1}, {"ab", 1}};
  std::string out;
  float score = 0;
  for (const auto& [text, kind] : pieces) {
    std::string piece = bytes_field(1, text);
    append_varint(piece, 2 << 3 | 5);
    fixtures::GgufBuilder::number(piece, score -= 1);
    out += bytes_field(1, piece + varint_field(3, kind));
  }
  out += bytes_field(2, varint_field(3, type) + varint_field(35, 1));
  return out + bytes_field(3, bytes_field(2, character_map) + varint_field(3, 1));
}

/// A double array with two sequences: "a" and a ligature would need more room than a test has, so
/// this one holds "a" alone and becomes "b".
std::string character_map_seed() {
  std::string map;
  std::vector<uint32_t> units(256, 0);
  units[0] = 1U << 10;                          // the root's children lie at 1 ^ byte
  units[1 ^ 'a'] = 'a' | 1U << 8 | 200U << 10;  // a value hangs at (1 ^ 'a') ^ 200
  units[(1 ^ 'a') ^ 200] = 1U << 31;            // where its replacement begins: 0
  fixtures::GgufBuilder::number(map, static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) fixtures::GgufBuilder::number(map, unit);
  return map + "b" + '\0';
}

void run_template(const std::string& path) {
  const jinja::Template parsed(read_file(path), "template");
  (void)parsed.render([](jinja::Heap& heap) {
    return jinja::Variables{{"bos_token", heap.text("<s>")},
                            {"messages", heap.list({heap.text("a"), heap.text("b")})}};
  });
}

}  // namespace

std::vector<FuzzTarget> text_targets() {
  return {{"tokenizer.json",
           "tokenizer.json",
           {kByteLevel, kLlama, kUnigram},
           tokenizer_words(),
           run_tokenizer},
          {"tokenizer.model",
           "tokenizer.model",
           {model_seed(1, character_map_seed()), model_seed(2, "")},
           {"\u2581", "<0x00>", "\x12", "\x1A", std::string(4, '\0')},
           run_tokenizer},
          {.name = "jinja",
           .file = "chat_template.jinja",
           .seeds =
               {"{{ bos_token }}{% for m in messages %}{% if loop.first %}{{ m | upper }}{% else %}"
                "{{ m ~ loop.index * 2 }}{% endif %}{% endfor %}",
                "{% set ns = namespace(x=1) %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% "
                "endfor %}"
                "{{ ns.x }}{% macro f(a, b=2) %}{{ a + b }}{% endmacro %}{{ f(1) }}{{ messages | "
                "tojson "
                "}}"},
           .tokens = {"{{",
                      "}}",
                      "{%",
                      "%}",
                      "{%-",
                      "-%}",
                      "for",
                      "in",
                      "if",
                      "endif",
                      "endfor",
                      "range(",
                      "(",
                      ")",
                      "[",
                      "]",
                      "|",
                      "~",
                      "**",
                      "messages",
                      "join",
                      "* 1000000",
                      "'",
                      "set x =",
                      "not",
                      "is",
                      "defined",
                      "tojson",
                      "replace('a', 'aa')",
                      "[::-1]",
                      "raise_exception('x')"},
           .run = run_template,
           .past_findings = {"{{ messages | tojson * 1000000 }}"}}};
}

}  // namespace medusa::fuzz
