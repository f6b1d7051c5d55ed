#include "data/jinja/template.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/jinja/error.h"
#include "data/jinja/globals.h"
#include "data/jinja/parser.h"
#include "data/jinja/renderer.h"
#include "data/utf8.h"

namespace medusa::jinja {
namespace {

constexpr const char* kRemedy =
    "correct it, or choose a built-in template with backbone.chat_template";

[[noreturn]] void fail(const std::string& name, int line, const Error& error) {
  throw UserError(fmt::format("{}:{}: {}, expected {}; {}", name, error.line ? error.line : line,
                              error.found, error.expected, kRemedy));
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  try {
    body_ = parse(repair_utf8(source));
  } catch (const Error& error) {
    fail(name_, error.line, error);
  }
}

std::string Template::render(const std::function<Variables(Heap&)>& variables,
                             const RenderOptions& options) const {
  Heap heap(options.limits);
  Renderer renderer(heap);
  try {
    const Variables given = variables(heap);
    Scope globals = make_globals(options.now, heap);
    for (const auto& [variable, value] : given) globals.set(variable, value);
    return renderer.render(body_, globals);
  } catch (const Error& error) {
    fail(name_, renderer.line(), error);
  } catch (const Refusal& refusal) {
    throw UserError(
        fmt::format("{}:{}: it refuses the conversation with '{}', expected one it was written "
                    "for; change the conversation, or choose a built-in template with "
                    "backbone.chat_template",
                    name_, renderer.line(), refusal.what()));
  }
}

}  // namespace medusa::jinja
