// A Jinja template, as chat models bring them: read once, rendered many times. The dialect is what
// transformers sets up (trim_blocks, lstrip_blocks, loop controls, its own tojson and
// 'generation'), without inheritance, includes, imports, recursive loops and 'call' blocks.
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/chat/jinja/syntax.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct RenderOptions {
  Limits limits;
  std::optional<std::tm> now;  // what strftime_now formats; without it there is no such function
};

/// Thread safety: const calls may run at the same time.
class Template {
 public:
  /// @param name  how messages call it: "the model's chat template".
  /// @throws UserError  with the line: it cannot be read, or has a statement we do not run.
  Template(std::string_view source, std::string name);

  /// @param variables  makes the values that the template sees, on the heap it is given.
  /// @throws UserError  with the line: the template refuses (raise_exception), uses what is not
  ///                    there, calls what we do not know, or passes a limit.
  std::string render(const std::function<Variables(Heap&)>& variables,
                     const RenderOptions& options = {}) const;

 private:
  std::string name_;
  Body body_;
};

}  // namespace medusa::jinja
