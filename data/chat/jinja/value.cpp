#include "data/chat/jinja/value.h"

#include <fmt/format.h>

#include "data/chat/jinja/compare.h"

namespace medusa::jinja {

const Value* Dict::find(const Value& key) const {
  for (const auto& [name, value] : entries)
    if (equal_scalars(name, key)) return &value;
  return nullptr;
}

const Value* Dict::find(std::string_view text) const {
  for (const auto& [name, value] : entries)
    if (const Text* name_text = as_text(name); name_text && name_text->utf8 == text) return &value;
  return nullptr;
}

bool is_true(const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i != 0;
  if (const auto* d = std::get_if<double>(&value)) return *d != 0;
  if (const Text* text = as_text(value)) return !text->utf8.empty();
  if (const Dict* dict = as_dict(value)) return !dict->entries.empty();
  if (const Sequence* sequence = as_sequence(value))
    return sequence->kind == Sequence::Kind::Generator || !sequence->items.empty();
  return true;
}

std::string_view type_name(const Value& value) {
  static constexpr std::string_view kNames[] = {"undefined", "NoneType",      "bool",    "int",
                                                "float",     "str",           "list",    "dict",
                                                "Namespace", "loop variable", "function"};
  if (const Sequence* sequence = as_sequence(value)) {
    switch (sequence->kind) {
      case Sequence::Kind::List:
        return "list";
      case Sequence::Kind::Tuple:
        return "tuple";
      case Sequence::Kind::Range:
        return "range";
      case Sequence::Kind::DictView:
        return "dict view";
      case Sequence::Kind::Generator:
        return "generator";
    }
  }
  return kNames[value.index()];
}

std::string describe(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value))
    return undefined->reason ? undefined->reason->utf8 : "an undefined value";
  return fmt::format("a value of type {}", type_name(value));
}

}  // namespace medusa::jinja
