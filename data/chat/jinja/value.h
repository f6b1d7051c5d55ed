// What a template computes with: Python's values, as far as templates see them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace medusa::jinja {

struct Text;
struct Sequence;
struct Dict;
struct Namespace;
struct Loop;
struct Function;

/// Prints as nothing and is false; anything else done to it is an error.
struct Undefined {
  const Text* reason = nullptr;  // "'tools' is undefined"; null: nothing more to say
};

struct None {};

/// A small handle: what it points to belongs to a Heap (or to the template, or the caller) and
/// lives until the rendering ends. Nothing but a Namespace changes once it is made, so copies may
/// share.
using Value = std::variant<Undefined, None, bool, int64_t, double, const Text*, const Sequence*,
                           const Dict*, Namespace*, const Loop*, const Function*>;

struct Text {
  std::string utf8;
  bool is_markup = false;  // came from |safe or |escape: what is added to it is escaped for HTML
};

struct Sequence {
  enum class Kind {
    List,
    Tuple,
    Range,
    DictView,   // of dict.items() and its kin: has a length, but no elements by index
    Generator,  // of |map, |select, …: can be iterated once
  };
  Kind kind = Kind::List;
  std::vector<Value> items;
  mutable bool spent = false;  // a Generator that was iterated
};

/// In order of insertion; keys are distinct.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;

  const Value* find(const Value& key) const;  // null: not there
  const Value* find(std::string_view text) const;
};

/// What namespace() makes: the only thing a template can change.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

/// The variable 'loop' of one round.
struct Loop {
  const std::vector<Value>* items = nullptr;
  size_t index = 0;  // of the round, from 0
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// A macro, a method bound to its object, or a function such as range.
struct Function {
  std::string name;
  std::function<Value(const Arguments&)> call;
};

inline bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }
inline bool is_none(const Value& value) { return std::holds_alternative<None>(value); }

/// Null if the value is something else.
inline const Text* as_text(const Value& value) {
  const auto* held = std::get_if<const Text*>(&value);
  return held ? *held : nullptr;
}
inline const Sequence* as_sequence(const Value& value) {
  const auto* held = std::get_if<const Sequence*>(&value);
  return held ? *held : nullptr;
}
inline const Dict* as_dict(const Value& value) {
  const auto* held = std::get_if<const Dict*>(&value);
  return held ? *held : nullptr;
}

/// As Python's bool().
bool is_true(const Value& value);

/// As Python names the type: "str", "dict", "NoneType".
std::string_view type_name(const Value& value);

/// "'tools' is undefined", or "an int" for what is defined: how an error names a value.
std::string describe(const Value& value);

}  // namespace medusa::jinja
