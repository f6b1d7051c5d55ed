#include "data/tokenizer/text_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "base/utf8.h"

namespace medusa {
namespace {

using Text = std::string;

Text replace_all(const Text& text, std::string_view from, std::string_view to) {
  Text out;
  out.reserve(text.size() + text.size() / 2);
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out.append(text, at, found - at);
    if (found == Text::npos) return out;
    out += to;
    at = found + from.size();
  }
}

unsigned form_options(Normalization form) {
  switch (form) {
    case Normalization::None:
      break;
    case Normalization::Nfc:
      return UTF8PROC_COMPOSE;
    case Normalization::Nfd:
      return UTF8PROC_DECOMPOSE;
    case Normalization::Nfkc:
      return UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case Normalization::Nfkd:
      return UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

Text step_applied(Normalization form, Text text, SectionStart /*start*/) {
  if (form == Normalization::None || is_ascii(text)) return text;  // ASCII is in every form
  utf8proc_uint8_t* out = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form_options(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  MEDUSA_ASSERT(size >= 0, size);  // the text is valid UTF-8
  return {reinterpret_cast<const char*>(out), static_cast<size_t>(size)};
}

Text step_applied(const TextNormalizer::Replace& step, const Text& text, SectionStart /*start*/) {
  return replace_all(text, step.from, step.to);
}

Text step_applied(const TextNormalizer::Prefix& step, Text text, SectionStart start) {
  if (text.empty() || start > step.last) return text;
  if (step.unless_there && text.starts_with(step.text)) return text;
  return step.text + text;
}

Text step_applied(TextNormalizer::TrimSpaces /*step*/, const Text& text, SectionStart /*start*/) {
  Text out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  for (;;) {
    if (out.ends_with(' '))
      out.pop_back();
    else if (out.ends_with(kSpaceMark))
      out.resize(out.size() - kSpaceMark.size());
    else
      return out;
  }
}

Text step_applied(const CharacterMap& map, const Text& text, SectionStart /*start*/) {
  return map.apply(text);
}

}  // namespace

std::string TextNormalizer::apply(std::string_view text, SectionStart start) const {
  Text result(text);
  for (const auto& step : steps_)
    result = std::visit(
        [&](const auto& each) { return step_applied(each, std::move(result), start); }, step);
  return result;
}

TextNormalizer llama_normalizer(bool adds_space) {
  TextNormalizer normalizer;
  if (adds_space)
    normalizer.add(TextNormalizer::Prefix{std::string(kSpaceMark), SectionStart::SpecialToken});
  normalizer.add(TextNormalizer::Replace{" ", std::string(kSpaceMark)});
  return normalizer;
}

}  // namespace medusa
