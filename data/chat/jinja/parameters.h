// The arguments of a call by the names of its parameters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// Every member throws Error where the arguments do not fit.
class Parameters {
 public:
  /// @param function  for messages.
  /// @param names     in order; the arguments must outlive this object.
  Parameters(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names);

  /// Null: not given.
  const Value* find(size_t i) const { return values_[i]; }
  const Value& need(size_t i) const;

  /// With what stands for an argument that is not given, or is none.
  bool flag(size_t i, bool otherwise) const;
  int64_t integer(size_t i, int64_t otherwise) const;

  /// Of an argument that must be text; nullopt: not given or none.
  std::optional<std::string_view> text(size_t i) const;
  std::string_view need_text(size_t i) const;

 private:
  [[noreturn]] void mismatch(size_t i, std::string_view expected) const;

  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace medusa::jinja
