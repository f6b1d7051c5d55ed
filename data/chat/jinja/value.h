// What a template computes with: Python's values, as far as templates see them, the variables that
// hold them, and the heap that owns them and counts what a rendering costs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
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
  bool is_number = false;  // digits of an integer that int64_t cannot hold: written without quotes
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

/// Of an int or a bool.
std::optional<int64_t> as_int(const Value& value);

/// Of an int, a bool or a float.
std::optional<double> as_number(const Value& value);

inline bool is_number(const Value& value) { return as_number(value).has_value(); }

/// The variables that a statement sees.
///
/// Loops, macros and captured blocks have a scope of their own; 'if' has none. Assignments go to
/// the innermost scope: what a loop sets is gone after the round.
struct Scope {
  const Scope* parent = nullptr;  // where the statement stands in the source; null: outermost
  std::vector<std::pair<std::string_view, Value>> variables;  // names lie in the template

  /// Null: there is none of this name, here or further out.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent)
      for (const auto& [each, value] : scope->variables)
        if (each == name) return &value;
    return nullptr;
  }

  void set(std::string_view name, const Value& value) {
    for (auto& [each, old] : variables)
      if (each == name) {
        old = value;
        return;
      }
    variables.emplace_back(name, value);
  }
};

/// Far above what published templates need: a conversation of 50 turns takes some ten thousand
/// steps.
struct Limits {
  int64_t max_steps = 4'000'000;  // expressions evaluated, elements looked at, text by 16 bytes
  int64_t max_bytes = int64_t{16} << 20;  // of all texts and lists made, the output among them;
                                          // one that grows takes up to three times as much
  int max_depth = 400;                    // of expressions, statements and macros in each other
};

/// Owns the values of one rendering and counts what it costs, so that no template can hang the
/// program or fill its memory.
///
/// A template's values refer to each other freely and are freed together: no counting of
/// references, no recursion however deep they are nested.
///
/// Every member may throw Error: a limit is passed.
class Heap {
 public:
  explicit Heap(const Limits& limits = {}) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Value text(std::string utf8, bool is_markup = false);
  Value large_integer(std::string digits);
  Value sequence(Sequence::Kind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(Sequence::Kind::List, std::move(items)); }
  Value tuple(std::vector<Value> items) {
    return sequence(Sequence::Kind::Tuple, std::move(items));
  }
  Value generator(std::vector<Value> items) {
    return sequence(Sequence::Kind::Generator, std::move(items));
  }
  /// Of entries with the same key the last one's value counts, in the first one's place.
  Value dict(const std::vector<std::pair<Value, Value>>& entries);
  Value name_space(std::vector<std::pair<std::string, Value>> attributes);
  Value loop(Loop state);
  Value function(std::string name, std::function<Value(const Arguments&)> call);
  Value undefined(std::string reason);

  /// Counts work. Without an argument: one expression.
  void step(int64_t steps = 1);

  /// Counts looking through so much text.
  void scan(size_t bytes) { step(1 + static_cast<int64_t>(bytes / 16)); }

  /// Counts memory that is taken elsewhere, the output for example.
  void take(size_t bytes);

  /// Throws where take(count * bytes) would, but counts nothing: to be asked before a text is made
  /// whose size the template chooses.
  void check_room(size_t count, size_t bytes) const;

 private:
  friend class Descent;
  Limits limits_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
  int depth_ = 0;
  std::deque<Text> texts_;  // a deque: addresses stay
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Function> functions_;
};

/// Counts one level of recursion while it lives.
class Descent {
 public:
  explicit Descent(Heap& heap);
  ~Descent() { --heap_.depth_; }
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;

 private:
  Heap& heap_;
};

}  // namespace medusa::jinja
