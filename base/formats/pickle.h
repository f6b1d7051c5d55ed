// The part of Python's pickle format that a saved dict of tensors consists of, read as data.
// A pickle is a program that may call anything; here nothing is imported, called or built: calls
// are kept as records, their targets must be on a list, and every other opcode is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// Place of a value in its Pickle.
using PickleIndex = int32_t;

struct PickleValue {
  enum class Kind {
    None,
    Boolean,     // integer: 0 or 1
    Integer,     // 64 bits
    Real,        // its value is not kept
    Text,        // UTF-8, unchecked
    Global,      // text: "module name"
    Tuple,       // items
    List,        // items
    Dict,        // items: key, value, key, value, …; keys may repeat
    Persistent,  // items: the one value that names something outside the pickle
    Call,        // items: a Global, a Tuple of arguments
  };
  Kind kind = Kind::None;
  int64_t integer = 0;
  std::string_view text;  // lies in the pickle's bytes
  std::vector<PickleIndex> items;
};

/// A parsed pickle of protocol 2, which torch.save writes. Texts point into the bytes it was read
/// from. Values may contain each other in circles: walk them with a purpose, never "all of it".
///
/// Memory: at most some 100 bytes for each of at most 400,000 operations, whatever the input.
/// Thread safety: const calls may run at the same time.
class Pickle {
 public:
  /// @param where    stands first in messages.
  /// @param globals  "module name" of what may be called or named; the call of
  ///                 "collections OrderedDict" without arguments is read as an empty Dict.
  /// @throws UserError  another protocol or opcode, a global that is not listed, a program that
  ///                    ends early, uses what is not there, or has more operations than the limit.
  Pickle(std::span<const uint8_t> bytes, std::string where,
         std::span<const std::string_view> globals);

  const PickleValue& root() const { return at(root_); }
  const PickleValue& at(PickleIndex index) const { return values_[static_cast<size_t>(index)]; }
  const PickleValue& item(const PickleValue& value, size_t i) const { return at(value.items[i]); }

 private:
  friend class PickleMachine;
  std::deque<PickleValue> values_;
  PickleIndex root_ = 0;
};

}  // namespace medusa
