// The grammar library xgrammar, called without Python: its shared library registers its classes
// with tvm-ffi, where their methods are found by name. All names that we call are in this file.
#include <dlfcn.h>
#include <fmt/format.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "infer/grammar/grammar.h"

namespace medusa {
namespace {

namespace ffi = tvm::ffi;

constexpr int64_t kCacheBytes = int64_t{256} << 20;  // of compiled grammars
constexpr int64_t kMostSpaces = 20;                  // one after the other, between JSON's tokens
constexpr int64_t kRawVocabulary = 0;                // tokens are given as their bytes

[[noreturn]] void throw_other_version(const std::string& name) {
  throw UserError(fmt::format(
      "the grammar library in {} has no {}, expected the version that tools/wheels-cpu.txt names; "
      "run tools/setup.sh again",
      MEDUSA_XGRAMMAR_LIBRARY, name));
}

/// A method of one of the library's classes.
ffi::Function method(std::string_view type, std::string_view name) {
  const std::string key = fmt::format("xgrammar.tvm_ffi_binding.{}", type);
  const TVMFFIByteArray key_bytes{key.data(), key.size()};
  int32_t index = -1;
  if (TVMFFITypeKeyToIndex(&key_bytes, &index) != 0) throw_other_version(key);
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(index);
  for (int32_t i = 0; i < info->num_methods; ++i) {
    const TVMFFIMethodInfo& each = info->methods[i];
    if (std::string_view(each.name.data, each.name.size) == name)
      return ffi::AnyView::CopyFromTVMFFIAny(each.method).cast<ffi::Function>();
  }
  throw_other_version(fmt::format("{}.{}", key, name));
}

/// The library's methods, looked up once.
struct Library {
  ffi::Function new_tokenizer = method("TokenizerInfo", "__ffi_init__");
  ffi::Function new_compiler = method("GrammarCompiler", "__ffi_init__");
  ffi::Function compile_schema = method("GrammarCompiler", "compile_json_schema");
  ffi::Function compile_regex = method("GrammarCompiler", "compile_regex");
  ffi::Function compile_tags = method("GrammarCompiler", "compile_structural_tag");
  ffi::Function compile_ebnf = method("GrammarCompiler", "compile_grammar_from_strings");
  ffi::Function new_matcher = method("GrammarMatcher", "__ffi_init__");
  ffi::Function accept = method("GrammarMatcher", "accept_token");
  ffi::Function rollback = method("GrammarMatcher", "rollback");
  ffi::Function is_terminated = method("GrammarMatcher", "is_terminated");
  ffi::Function fill_mask = method("GrammarMatcher", "fill_next_token_bitmask");
  ffi::Function forced_text = method("GrammarMatcher", "find_jump_forward_string");
};

/// @throws UserError  it cannot be loaded, or is of another version.
const Library& library() {
  static const Library loaded = [] {
    if (dlopen(MEDUSA_XGRAMMAR_LIBRARY, RTLD_NOW | RTLD_LOCAL) == nullptr)
      throw UserError(fmt::format(
          "the grammar library cannot be loaded: {}; expected it where medusa was built with it; "
          "run tools/setup.sh again",
          dlerror()));
    return Library();
  }();
  return loaded;
}

/// Finds the tokens that spell a text.
class Speller {
 public:
  explicit Speller(const std::vector<std::string>& bytes) {
    for (size_t id = 0; id < bytes.size(); ++id) {
      if (bytes[id].empty()) continue;
      ids_.emplace(bytes[id], static_cast<TokenId>(id));
      longest_ = std::max(longest_, bytes[id].size());
    }
  }

  /// The longest token at each place, from the first on; ends early where none fits.
  std::vector<TokenId> spell(std::string_view text, int32_t most) const {
    std::vector<TokenId> tokens;
    while (!text.empty() && std::ssize(tokens) < most) {
      size_t size = std::min(longest_, text.size());
      auto found = ids_.find(std::string(text.substr(0, size)));
      while (found == ids_.end() && --size > 0)
        found = ids_.find(std::string(text.substr(0, size)));
      if (found == ids_.end()) break;
      tokens.push_back(found->second);
      text.remove_prefix(size);
    }
    return tokens;
  }

 private:
  std::unordered_map<std::string, TokenId> ids_;  // of several tokens with these bytes, the first
  size_t longest_ = 0;                            // bytes
};

class Matcher : public GrammarMatcher {
 public:
  Matcher(ffi::Any matcher, std::shared_ptr<const Speller> speller)
      : matcher_(std::move(matcher)), speller_(std::move(speller)) {}

  bool accept(TokenId token) override {
    if (has_ended()) return false;  // the library would write a warning
    return library().accept(matcher_, static_cast<int64_t>(token), false).cast<bool>();
  }
  void rollback(int32_t num_tokens) override {
    library().rollback(matcher_, static_cast<int64_t>(num_tokens));
  }
  bool has_ended() const override { return library().is_terminated(matcher_).cast<bool>(); }

  void fill_mask(std::span<int32_t> mask) override {
    int64_t shape[] = {1, std::ssize(mask)}, strides[] = {std::ssize(mask), 1};
    DLTensor rows{};
    rows.data = mask.data();
    rows.device = {kDLCPU, 0};
    rows.ndim = 2;
    rows.dtype = {kDLInt, 32, 1};
    rows.shape = shape;
    rows.strides = strides;
    library().fill_mask(matcher_, &rows, int64_t{0}, false);
  }
  std::vector<TokenId> forced_tokens(int32_t most) const override {
    if (has_ended()) return {};
    const auto text = library().forced_text(matcher_).cast<ffi::String>();
    return speller_->spell({text.data(), text.size()}, most);
  }

 private:
  ffi::Any matcher_;
  std::shared_ptr<const Speller> speller_;
};

class Grammar : public CompiledGrammar {
 public:
  Grammar(ffi::Any grammar, int64_t vocab_size, std::shared_ptr<const Speller> speller)
      : grammar_(std::move(grammar)), vocab_size_(vocab_size), speller_(std::move(speller)) {}

  std::unique_ptr<GrammarMatcher> make_matcher() const override {
    const auto none = nullptr;  // end tokens and temperature are not changed
    return std::make_unique<Matcher>(
        library().new_matcher(grammar_, none, false, int64_t{-1}, none), speller_);
  }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  ffi::Any grammar_;
  int64_t vocab_size_;
  std::shared_ptr<const Speller> speller_;
};

/// The library's message without the place in its code: "[10:41:16] /x/y.cc:4944: Unsupported
/// type".
std::string reason_of(std::string_view message) {
  constexpr std::string_view kFileEnd = ".cc:";
  if (const size_t file = message.find(kFileEnd); file != std::string_view::npos)
    if (const size_t colon = message.find(": ", file + kFileEnd.size());
        colon != std::string_view::npos)
      message.remove_prefix(colon + 2);
  return std::string(message.substr(0, message.find('\n')));
}

class Compiler : public GrammarCompiler {
 public:
  explicit Compiler(const GrammarVocabulary& vocabulary)
      : vocab_size_(std::ssize(vocabulary.bytes)),
        speller_(std::make_shared<const Speller>(vocabulary.bytes)) {
    MEDUSA_ASSERT(!vocabulary.ends.empty());
    ffi::Array<ffi::Any> bytes, ends;
    for (const std::string& each : vocabulary.bytes) bytes.push_back(ffi::Bytes(each));
    for (const TokenId each : vocabulary.ends) ends.push_back(static_cast<int64_t>(each));
    const ffi::Any tokenizer =
        library().new_tokenizer(bytes, kRawVocabulary, vocab_size_, ends, false);
    constexpr int64_t kThreads = 1;
    compiler_ = library().new_compiler(tokenizer, kThreads, true, kCacheBytes);
  }

  std::shared_ptr<const CompiledGrammar> compile(const GrammarText& grammar) override {
    try {
      return std::make_shared<Grammar>(compiled(grammar), vocab_size_, speller_);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // tvm-ffi's or the library's own
      throw UserError(fmt::format("the {} cannot be compiled: {}; correct it",
                                  enum_name(grammar.kind), reason_of(error.what())));
    }
  }

 private:
  ffi::Any compiled(const GrammarText& grammar) const {
    const Library& from = library();
    const ffi::String text(grammar.text);
    const auto none = nullptr;
    switch (grammar.kind) {
      case GrammarKind::JsonSchema:  // any white space, but no end of it; strict; keys in order
        return from.compile_schema(compiler_, text, true, none, none, true, kMostSpaces, false);
      case GrammarKind::Regex:
        return from.compile_regex(compiler_, text);
      case GrammarKind::StructuralTag:
        return from.compile_tags(compiler_, text);
      case GrammarKind::Ebnf:
        break;
    }
    return from.compile_ebnf(compiler_, text, ffi::String("root"));
  }

  int64_t vocab_size_;
  std::shared_ptr<const Speller> speller_;
  ffi::Any compiler_;
};

}  // namespace

bool has_grammar_library() { return true; }

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const GrammarVocabulary& vocabulary) {
  return std::make_unique<Compiler>(vocabulary);
}

}  // namespace medusa
