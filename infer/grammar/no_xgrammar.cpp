// Stands for xgrammar.cpp in a build without the library.
#include "base/error.h"
#include "infer/grammar/grammar.h"

namespace medusa {

bool has_grammar_library() { return false; }

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const GrammarVocabulary& /*vocabulary*/) {
  throw UserError(
      "this build of medusa has no grammar library, expected xgrammar, which keeps a text inside a "
      "schema, an expression or a grammar; run tools/setup.sh, then cmake --preset release, and "
      "build again");
}

}  // namespace medusa
