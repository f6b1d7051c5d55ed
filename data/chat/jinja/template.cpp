#include "data/chat/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/parser.h"
#include "data/chat/jinja/renderer.h"

namespace medusa::jinja {
namespace {

constexpr const char* kRemedy =
    "correct it, or choose a built-in template with backbone.chat_template";

[[noreturn]] void fail(const std::string& name, const Error& error) {
  throw UserError(fmt::format("{}:{}: {}, expected {}; {}", name, std::max(error.line, 1),
                              error.found, error.expected, kRemedy));
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  try {
    body_ = parse(repair_utf8(source));
  } catch (const Error& error) {
    fail(name_, error);
  }
}

std::string Template::render(const std::function<Variables(Heap&)>& variables,
                             const RenderOptions& options) const {
  Heap heap(options.limits);
  try {
    const Variables given = variables(heap);
    Scope globals = make_globals(options.now, heap);
    for (const auto& [variable, value] : given) globals.set(variable, value);
    return Renderer(heap).render(body_, globals);
  } catch (const Error& error) {
    fail(name_, error);
  } catch (const Refusal& refusal) {
    throw UserError(
        fmt::format("{}:{}: it refuses the conversation with '{}', expected one it was written "
                    "for; change the conversation, or choose a built-in template with "
                    "backbone.chat_template",
                    name_, refusal.line, refusal.what()));
  }
}

}  // namespace medusa::jinja
