// What is wrong with published heads, or will go wrong in some engine without a word: what can be
// told from files alone.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backbone/weights.h"
#include "heads/foreign/foreign_heads.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

enum class Severity {
  Failure,  // the heads do not work, or silently do worse, in the engines named
  Warning,  // they work, but something is wasted or only some engines read them
};

template <>
struct EnumNames<Severity> {
  static constexpr std::array<std::pair<const char*, Severity>, 2> values{
      {{"failure", Severity::Failure}, {"warning", Severity::Warning}}};
};

struct HeadFinding {
  Severity severity = Severity::Failure;
  std::string code;     // a stable word for programs: "bias_flag"
  std::string engines;  // where: "every engine", "vLLM", "TGI, vLLM"
  std::string text;     // where, found, expected, what to do
};

/// @param backbone  its layers are not looked at.
/// @throws UserError  a second file of the folder cannot be read.
std::vector<HeadFinding> diagnose(const ForeignHeads& heads, const Weights& backbone);

/// A tree that the heads cannot fill, or heads that it never runs.
std::vector<HeadFinding> diagnose_tree(const ChoiceTree& tree, int64_t num_heads,
                                       const std::string& file);

}  // namespace medusa
