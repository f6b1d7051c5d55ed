#include "data/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

std::string error_text(int code) {
  PCRE2_UCHAR8 text[256];
  if (pcre2_get_error_message_8(code, text, sizeof text) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(text);
}

/// Writes \s as \p{wspace} and \S as \P{wspace}; every other escape stays.
std::string with_unicode_space(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    out += pattern[i];
    if (pattern[i] != '\\' || i + 1 == pattern.size()) continue;
    const char escaped = pattern[++i];
    if (escaped == 's' || escaped == 'S')
      out += escaped == 's' ? "p{wspace}" : "P{wspace}";
    else
      out += escaped;
  }
  return out;
}

/// What Oniguruma, whose expressions these files hold, reads otherwise than PCRE2; empty: nothing.
std::string read_otherwise(std::string_view pattern) {
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const auto rest = pattern.substr(i);
    if (rest[0] == '\\') {
      if (rest.starts_with("\\h") || rest.starts_with("\\H")) return std::string(rest.substr(0, 2));
      ++i;
    } else if (in_class && rest.starts_with("&&")) {
      return "&& in a class";
    } else if (in_class && rest.starts_with("[:")) {
      i += std::min(rest.find(":]"), rest.size() - 2) + 1;
    } else if (in_class && rest[0] == '[') {
      return "a class in a class";
    } else if (in_class && rest[0] == ']') {
      in_class = false;
    } else if (!in_class && rest[0] == '[') {
      in_class = true;
      if (rest.starts_with("[^")) ++i;
      if (pattern.substr(i + 1).starts_with("]")) ++i;  // the first one is a character
    }
  }
  return "";
}

}  // namespace

struct Regex::Code {
  Code(pcre2_code_8* code, std::string file) : compiled(code), source(std::move(file)) {}
  ~Code() { pcre2_code_free_8(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code_8* compiled;
  std::string source;
};

struct Regex::Scratch::State {
  pcre2_match_data_8* match = pcre2_match_data_create_8(1, nullptr);  // one pair: the whole match
  ~State() { pcre2_match_data_free_8(match); }
};

Regex::Scratch::Scratch() : state_(std::make_unique<State>()) {}
Regex::Scratch::~Scratch() = default;

Regex::Regex(std::string_view pattern, const std::string& source) {
  if (const std::string found = read_otherwise(pattern); !found.empty())
    throw UserError(fmt::format(
        "{}: the pattern '{}' holds {}, expected a regular expression without it, which medusa "
        "would read otherwise than the model's authors; use the GGUF file of the model",
        source, pattern, found));
  const std::string text = with_unicode_space(pattern);
  int error = 0;
  size_t offset = 0;
  auto* compiled =
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  code_ = std::make_shared<const Code>(compiled, source);
  if (compiled == nullptr)
    throw UserError(fmt::format(
        "{}: the pattern '{}' cannot be read ({}); expected a regular expression, download the "
        "tokenizer again",
        source, pattern, error_text(error)));
  pcre2_jit_compile_8(compiled, PCRE2_JIT_COMPLETE);  // without it, matching is slower
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t start,
                                                     Scratch& scratch) const {
  auto* match = scratch.state_->match;
  const auto run = [&](uint32_t options) {
    return pcre2_match_8(code_->compiled, reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(),
                         start, options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, nullptr);
  };
  int result = run(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);  // it has its own heap
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0)
    throw UserError(fmt::format(
        "{}: its pattern fails on a text of {} bytes ({}); expected one that can be matched, split "
        "the text into shorter ones",
        code_->source, text.size(), error_text(result)));
  const size_t* bounds = pcre2_get_ovector_pointer_8(match);
  MEDUSA_ASSERT(bounds[0] < bounds[1] && bounds[0] >= start, bounds[0], bounds[1], start);
  return std::pair{bounds[0], bounds[1]};
}

}  // namespace medusa
