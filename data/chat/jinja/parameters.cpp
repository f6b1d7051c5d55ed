#include "data/chat/jinja/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

Parameters::Parameters(std::string_view function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size())
    throw Error(fmt::format("{} has {} arguments", function, arguments.positional.size()),
                fmt::format("at most {}", names_.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end() || values_[static_cast<size_t>(found - names_.begin())])
      throw Error(fmt::format("{} has an argument '{}'", function, name),
                  found == names_.end() ? "another name" : "it once");
    values_[static_cast<size_t>(found - names_.begin())] = &value;
  }
}

void Parameters::mismatch(size_t i, std::string_view expected) const {
  throw Error(fmt::format("the argument '{}' of {} is {}", names_[i], function_,
                          values_[i] ? describe(*values_[i]) : "missing"),
              std::string(expected));
}

const Value& Parameters::need(size_t i) const {
  if (!values_[i]) mismatch(i, "a value");
  return *values_[i];
}

bool Parameters::flag(size_t i, bool otherwise) const {
  return values_[i] ? is_true(*values_[i]) : otherwise;
}

int64_t Parameters::integer(size_t i, int64_t otherwise) const {
  if (!values_[i] || is_none(*values_[i])) return otherwise;
  const auto number = as_int(*values_[i]);
  if (!number) mismatch(i, "an integer");
  return *number;
}

std::optional<std::string_view> Parameters::text(size_t i) const {
  if (!values_[i] || is_none(*values_[i])) return std::nullopt;
  return need_text(i);
}

std::string_view Parameters::need_text(size_t i) const {
  const Text* text = as_text(need(i));
  if (!text) mismatch(i, "a text");
  return text->utf8;
}

}  // namespace medusa::jinja
