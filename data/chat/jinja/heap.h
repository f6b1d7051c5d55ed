// Owns the values of one rendering and counts what it costs, so that no template can hang the
// program or fill its memory.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// Far above what published templates need: a conversation of 50 turns takes some ten thousand
/// steps.
struct Limits {
  int64_t max_steps = 4'000'000;  // expressions evaluated, elements looked at, text by 16 bytes
  int64_t max_bytes = int64_t{16} << 20;  // of all texts and lists made, the output among them;
                                          // one that grows takes up to three times as much
  int max_depth = 400;                    // of expressions, statements and macros in each other
};

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
