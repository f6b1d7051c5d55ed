// First words of user messages, written by hand: what a chat model continues when it is to write
// the questions of its own training text (self-prompting).
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"

namespace medusa {

/// The first words of message i, e.g. "Explain how volcanoes", without a space behind them: the
/// model finishes the message. A small model left alone asks the same few questions again and
/// again; openings of every kind of work and subjects of every field keep it varied.
///
/// Kinds of work follow each other in turn, and a kind's combinations of opening and subject in an
/// order that random chooses, each once before any comes again.
/// @param i  0 and up.
std::string starter(int64_t i, const Random& random);

/// How many combinations there are before a kind of work begins to repeat, times the kinds:
/// starter(0 … n - 1) are all different.
int64_t num_distinct_starters();

}  // namespace medusa
