// What a request may change about the target's logits before its rule judges them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/token.h"

namespace medusa {

/// Changes the rows of one sequence. A row depends on the tokens before it alone: the prompt, the
/// text, and the path from the root to the row's node. So a node of a tree is judged as plain
/// decoding would judge it. A new sequence gets an object of its own.
///
/// Thread safety: none.
class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;

  /// Called once, before all other functions.
  virtual void begin(std::span<const TokenId> /*prompt*/) {}

  /// The text has grown by this token.
  virtual void take(TokenId /*token*/) {}

  /// Changes the row that predicts what follows the prompt, the text and then a path. A token of
  /// -infinity cannot come.
  /// @param path  tokens below the root; each of them was possible where it stands.
  /// @param row   [V]
  virtual void process(std::span<const TokenId> path, std::span<float> row) = 0;
};

/// Makes the processor of a new sequence.
using LogitsProcessorFactory = std::function<std::unique_ptr<LogitsProcessor>()>;

}  // namespace medusa
