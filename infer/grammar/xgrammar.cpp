// The grammar library xgrammar, called without Python: its shared library registers its classes
// with tvm-ffi, where their methods are found by name. All names that we call are in this file.
#include <dlfcn.h>
#include <fmt/format.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "infer/grammar/call_budget.h"
#include "infer/grammar/grammar.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar/regex_syntax.h"
#include "infer/grammar/rule_counts.h"
#include "infer/grammar/speller.h"
#include "infer/grammar/watched_call.h"

namespace medusa {
namespace {

namespace ffi = tvm::ffi;

constexpr int64_t kCacheBytes = int64_t{256} << 20;  // of compiled grammars, as the library counts
constexpr size_t kMostKept = 1024;                   // grammars; of small ones it counts a little
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
  ffi::Function clear_cache = method("GrammarCompiler", "clear_cache");
  ffi::Function compile_schema = method("GrammarCompiler", "compile_json_schema");
  ffi::Function compile_regex = method("GrammarCompiler", "compile_regex");
  ffi::Function compile_tags = method("GrammarCompiler", "compile_structural_tag");
  ffi::Function compile_ebnf = method("GrammarCompiler", "compile_grammar_from_strings");
  ffi::Function new_matcher = method("GrammarMatcher", "__ffi_init__");
  ffi::Function accept = method("GrammarMatcher", "accept_token");
  ffi::Function accept_text = method("GrammarMatcher", "accept_string");
  ffi::Function rollback = method("GrammarMatcher", "rollback");
  ffi::Function is_terminated = method("GrammarMatcher", "is_terminated");
  ffi::Function fill_mask = method("GrammarMatcher", "fill_next_token_bitmask");
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

class Matcher : public GrammarMatcher {
 public:
  /// @param is_plain  no mask takes long.
  Matcher(ffi::Any matcher, bool is_plain, std::shared_ptr<const Speller> speller,
          std::shared_ptr<CallBudget> budget, std::shared_ptr<LiveReadings> readings)
      : matcher_(std::move(matcher)),
        is_plain_(is_plain),
        speller_(std::move(speller)),
        budget_(std::move(budget)),
        readings_(std::move(readings)) {}
  ~Matcher() override { readings_->remove(read_for_); }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  bool accept(TokenId token) override {
    // Of others the library would write a warning.
    if (has_ended() || !speller_->may_come(token)) return false;
    if (speller_->makes_surrogate(token, ends_in_lead())) return false;
    check_readings();
    const std::string& bytes = speller_->bytes(token);
    const bool is_long = bytes.size() > kMostAtOnce;
    const Duration began = CallBudget::thread_time();
    const bool accepted = is_long ? accept_bytes(bytes) : budget_->timed([&] {
      return library().accept(matcher_, static_cast<int64_t>(token), false).cast<bool>();
    });
    if (!accepted) return false;
    const Duration spent = CallBudget::thread_time() - began - LiveReadings::kOfToken;
    steps_.push_back({is_long ? std::ssize(bytes) : 1, std::max(spent, Duration::zero()),
                      bytes.ends_with(Speller::kLead)});
    read_for_ += steps_.back().time;
    readings_->add(steps_.back().time);
    if (steps_.size() > longest_) {
      longest_ = steps_.size();
      budget_->add_token();
    }
    return true;
  }
  void rollback(int32_t num_tokens) override {
    if (is_left_) return;
    Step all{};
    for (int32_t i = 0; i < num_tokens; ++i) {
      all.size += steps_.back().size;
      all.time += steps_.back().time;
      steps_.pop_back();
    }
    take_back(all.size);
    read_for_ -= all.time;
    readings_->remove(all.time);
  }
  bool has_ended() const override {
    return is_left_ || library().is_terminated(matcher_).cast<bool>();
  }

  void fill_mask(std::span<int32_t> mask) override {
    if (is_plain_) {
      budget_->timed([&] { return fill(matcher_, mask); });
    } else {
      if (!filled_) filled_ = std::make_shared<std::vector<int32_t>>(mask.size());
      watched([matcher = matcher_, into = filled_] { fill(matcher, *into); });
      std::copy(filled_->begin(), filled_->end(), mask.begin());
    }
    speller_->clear_surrogates(mask, ends_in_lead());
  }
  // The library's own search for a text that must come has no end where that text has none.
  std::vector<TokenId> forced_tokens(int32_t most) override {
    std::vector<TokenId> tokens;
    std::vector<int32_t> mask(speller_->mask_words());
    while (std::ssize(tokens) < most && !has_ended()) {
      fill_mask(mask);
      const std::optional<TokenId> next = speller_->only_way(mask);
      if (!next || !accept(*next)) break;
      tokens.push_back(*next);
    }
    rollback(static_cast<int32_t>(tokens.size()));
    return tokens;
  }

 private:
  using Duration = CallBudget::Duration;

  /// A token.
  struct Step {
    int64_t size = 0;           // as the library counts it
    Duration time{};            // that it took, beyond what is not counted
    bool ends_in_lead = false;  // Speller::kLead
  };

  bool ends_in_lead() const { return !steps_.empty() && steps_.back().ends_in_lead; }

  /// Of several texts that are read in many ways those end that ask.
  void check_readings() const {
    if (read_for_ <= LiveReadings::kOfText || !readings_->are_too_many()) return;
    if (LiveReadings::are_too_many_of_one(read_for_)) budget_->end({});
    throw UserError(
        "the grammar reads the answer in so many ways that they fill the memory that all "
        "requests' grammars share, expected one that reads a text in one way; merge "
        "alternatives that begin alike, or ask for fewer or shorter answers");
  }

  // What an ambiguous grammar takes for a text grows with the third power of its length, so that a
  // token of 64 bytes could take seconds in one call.
  static constexpr size_t kMostAtOnce = 8;

  /// Of one that another thread may compute on by then.
  static bool fill(const ffi::Any& matcher, std::span<int32_t> mask) {
    int64_t shape[] = {1, std::ssize(mask)}, strides[] = {std::ssize(mask), 1};
    DLTensor rows{};
    rows.data = mask.data();
    rows.device = {kDLCPU, 0};
    rows.ndim = 2;
    rows.dtype = {kDLInt, 32, 1};
    rows.shape = shape;
    rows.strides = strides;
    library().fill_mask(matcher, &rows, int64_t{0}, false);
    return true;
  }

  /// A mask tries many tokens in one call, which an ambiguous grammar reads for minutes.
  void watched(std::function<void()> work) const {
    budget_->spend({});
    const auto spent = run_watched(std::move(work), CallBudget::kOfCall);
    if (!spent) {
      is_left_ = true;
      budget_->end(CallBudget::kOfCall);
    }
    budget_->spend(*spent);
  }

  void take_back(int64_t num_steps) { library().rollback(matcher_, num_steps); }

  /// Byte by byte, so that the budget is asked behind each.
  bool accept_bytes(std::string_view bytes) {
    int64_t done = 0;
    CallBudget::Duration unspent{};
    try {
      for (const char& byte : bytes) {
        const bool accepted = budget_->timed_part(
            [&] {
              return library().accept_text(matcher_, ffi::Bytes(&byte, 1), false).cast<bool>();
            },
            unspent);
        if (!accepted) {
          take_back(done);
          return false;
        }
        ++done;
      }
      budget_->spend(unspent);
    } catch (const UserError&) {
      take_back(done);
      throw;
    }
    return true;
  }

  ffi::Any matcher_;
  bool is_plain_;
  mutable bool is_left_ = false;  // another thread computes on the library's matcher: not touched
  std::shared_ptr<std::vector<int32_t>> filled_;  // the mask of a watched call
  std::shared_ptr<const Speller> speller_;
  std::shared_ptr<CallBudget> budget_;
  std::shared_ptr<LiveReadings> readings_;
  std::vector<Step> steps_;
  Duration read_for_{};  // of all of them together
  size_t longest_ = 0;   // tokens
};

class Grammar : public CompiledGrammar {
 public:
  Grammar(ffi::Any grammar, bool is_plain, int64_t vocab_size,
          std::shared_ptr<const Speller> speller, std::shared_ptr<CallTime> time_of_all,
          std::shared_ptr<CallBudget> budget, std::shared_ptr<LiveReadings> readings)
      : grammar_(std::move(grammar)),
        is_plain_(is_plain),
        vocab_size_(vocab_size),
        speller_(std::move(speller)),
        time_of_all_(std::move(time_of_all)),
        budget_(std::move(budget)),
        readings_(std::move(readings)) {}

  std::unique_ptr<GrammarMatcher> make_matcher() const override {
    const auto none = nullptr;  // end tokens and temperature are not changed
    return std::make_unique<Matcher>(
        library().new_matcher(grammar_, none, false, int64_t{-1}, none), is_plain_, speller_,
        budget_, readings_);
  }
  void begin_step() const override { time_of_all_->begin_step(); }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  ffi::Any grammar_;
  bool is_plain_;
  int64_t vocab_size_;
  std::shared_ptr<const Speller> speller_;
  std::shared_ptr<CallTime> time_of_all_;
  std::shared_ptr<CallBudget> budget_;
  std::shared_ptr<LiveReadings> readings_;
};

/// The library's message without the place in its code: "[10:41:16] /x/y.cc:4944: Unsupported
/// type". Those of its assertions name its variables, and would tell nobody anything.
std::string reason_of(std::string_view message) {
  for (const char* assertion : {"Check failed", "type mismatch"})
    if (message.find(assertion) != std::string_view::npos)
      return "the grammar library has no place for a part of it, or for a number in it";
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
        speller_(std::make_shared<const Speller>(vocabulary)) {
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
    const std::string text = supported(grammar);
    try {
      auto out = std::make_shared<Grammar>(compiled(grammar.kind, text),
                                           is_plain(grammar.kind, text), vocab_size_, speller_,
                                           time_of_all_, budget_of(grammar), readings_);
      expect_a_text(*out);
      return out;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {  // tvm-ffi's or the library's own
      throw UserError(fmt::format("the {} cannot be compiled: {}; correct it",
                                  enum_name(grammar.kind), reason_of(error.what())));
    }
  }

 private:
  /// The grammar as the library reads it to the letter; tags are made of such parts.
  static std::string supported(const GrammarText& grammar) {
    if (grammar.kind == GrammarKind::Regex) return supported_regex(grammar.text);
    if (grammar.kind == GrammarKind::Ebnf) return supported_rules(grammar.text);
    if (grammar.kind != GrammarKind::JsonSchema) return grammar.text;
    const auto schema = nlohmann::ordered_json::parse(grammar.text, nullptr, false);
    if (schema.is_discarded())
      throw UserError("the json_schema cannot be compiled: it is not JSON; correct it");
    return json_text(supported_schema(schema));
  }

  /// Whether a text is read in a few ways at most: a schema without expressions, or tags around
  /// such ones.
  /// @param text  as the library gets it: formats and lengths are expressions there.
  static bool is_plain(GrammarKind kind, std::string_view text) {
    if (kind != GrammarKind::JsonSchema && kind != GrammarKind::StructuralTag) return false;
    const auto has = [text](const char* word) { return text.find(word) != std::string_view::npos; };
    return !has("pattern") && !has("regex") && !has("grammar") && !has("ebnf");
  }

  /// The same one when a grammar comes again. With so many of them the library forgets its own,
  /// too.
  std::shared_ptr<CallBudget> budget_of(const GrammarText& grammar) {
    const std::string key = Fingerprint().add(enum_name(grammar.kind)).add(grammar.text).digest();
    if (budgets_.size() >= kMostKept && !budgets_.contains(key)) {
      budgets_.clear();
      library().clear_cache(compiler_);
    }
    const auto [found, is_new] = budgets_.try_emplace(key);
    if (is_new) found->second = std::make_shared<CallBudget>(time_of_all_);
    return found->second;
  }

  void expect_a_text(const Grammar& grammar) const {
    std::vector<int32_t> mask(speller_->mask_words());
    grammar.make_matcher()->fill_mask(mask);
    if (std::all_of(mask.begin(), mask.end(), [](int32_t word) { return word == 0; }))
      throw UserError(
          "the grammar holds no text at all, expected at least one; look for rules or references "
          "that lead back to themselves");
  }

  ffi::Any compiled(GrammarKind kind, const std::string& grammar) const {
    const Library& from = library();
    const ffi::String text(grammar);
    const auto none = nullptr;
    switch (kind) {
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
  std::shared_ptr<CallTime> time_of_all_ = std::make_shared<CallTime>();
  std::shared_ptr<LiveReadings> readings_ = std::make_shared<LiveReadings>();
  std::unordered_map<std::string, std::shared_ptr<CallBudget>> budgets_;
};

}  // namespace

bool has_grammar_library() { return true; }

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const GrammarVocabulary& vocabulary) {
  return std::make_unique<Compiler>(vocabulary);
}

}  // namespace medusa
