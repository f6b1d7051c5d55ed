// Holds identifiers to the words of docs/glossary.md: what an older word named has the field's
// name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Words that no identifier in these places is made of, and what is written instead.
struct OldWords {
  const char* words;  // with blanks between them; a name with a capital or an underscore is whole
  const char* instead;
  std::vector<std::string> places{};  // folders or files from the root; empty: everywhere
};

const std::vector<OldWords>& old_words() {
  static const std::vector<OldWords> kWords{
      // Decoding.
      {"guess guesses guessed guesser guessers guessing", "draft, drafts, heads runner"},
      {"belief beliefs believe believes", "confidence"},
      {"chance chances", "acceptance probability, accept_prob"},
      {"price priced worth worthwhile worthy dear dearer", "cost, gain, costly"},
      {"twin twins", "duplicates, reference"},
      {"HitRates HeadsRest HeadsPay", "AcceptanceStats, HeadsBackoff"},
      {"pace", "throughput", {"infer", "tests/infer"}},
      {"judge judges judged", "verify, verified", {"infer/cuda", "tests/cuda", "backbone"}},
      {"mailbox posted", "host buffer, in-flight step"},
      {"RowPlan PlannedRow plan_rows", "ForwardPlan, BatchToken, plan_forward"},
      {"straight", "contiguous", {"backbone", "tests/backbone", "tests/cuda"}},
      // Model and kernels.
      {"product products", "gemm, matmul, linear", {"backbone", "heads", "train"}},
      {"number numbers", "element, elements", {"backbone/cpu", "backbone/cuda", "heads/cpu"}},
      {"number_bytes number_format", "element_bytes, dtype_name"},
      {"engine engines",
       "kernel, isa",
       {"backbone", "infer", "train", "runtime", "tests/backbone"}},
      {"widen widens widened widening", "upcast"},
      {"soften softens softened", "softmax"},
      {"mix mixed mixes", "attention_out, add_values", {"backbone"}},
      {"sweep sweeps", "macro kernel", {"backbone"}},
      {"level levels", "quant, quants", {"backbone"}},
      {"offsets", "mins", {"backbone"}},
      {"part parts", "vec, panel", {"backbone/cpu/simd", "backbone/cpu/gemm"}},
      {"Lanes Floats", "F32x16"},
      {"BlockMatrix BlockKind BlockFormat", "QuantizedMatrix, QuantKind, QuantFormat"},
      {"turns turned", "uses_rope, rotated", {"backbone"}},
      {"rotary_rows place_heads fresh_values", "rope_permutation, rope_and_cache, pass_values"},
      {"PartClock PassPart set_clock", "StageTimer, ForwardStage, set_timer"},
      {"clock lap laps", "timer, record", {"backbone/cpu", "backbone/cuda", "backbone/llama.h"}},
      {"DeviceOfKernels DeviceJudge", "KernelDeviceGuard, VerifyParameters"},
      // Training, data and measurements.
      {"PositionPool", "ShuffleBuffer"},
      {"preflight", "resource estimate", {"train", "tools", "tests/train", "tests/tools"}},
      {"sealed seal seals", "finalized", {"data", "tests/data"}},
      {"own_share take_parameters_of_first", "sharded_samples, broadcast_parameters"},
      {"yardstick yardsticks contender contenders", "baseline, bench case"},
      {"roof roofs", "roofline"},
      {"take_turns", "interleave"},
      {"Workplace Ran slurp spill", "CliFixture, ProcessResult, file_text, write_text"},
      // Spelling.
      {"normalise normalised normalises normalising quantise quantised quantises quantisation "
       "quantisations dequantise dequantised optimiser optimise optimised summarise summarised "
       "recognise recognised recognises factorise initialise initialised serialise organise "
       "neighbour neighbours neighbouring colour colours coloured centre honours behaviour "
       "programme artefact artefacts",
       "American spelling"},
  };
  return kWords;
}

/// Identifiers that keep an old word, because somebody else gave them their name.
bool is_kept(const std::string& file, const std::string& name) {
  // The paper's setting `lookahead.guesses`.
  if (name == "guesses") return file.find("lookahead_drafter") != std::string::npos;
  // LibTorch's, and the mathematician's dot product.
  if (name == "scaled_dot_product_attention" || name == "dot_products_are_fast") return true;
  // nlohmann::json's.
  if (name.starts_with("is_number")) return true;
  // Addresses that a stranger cannot guess.
  return name == "TheProgramIsLoadedAtAddressesThatNobodyCanGuess";
}

/// The code of a file: neither comments nor texts nor what is included.
std::string code_of(const std::string& text) {
  std::string code;
  const auto skip_to = [&](size_t at, std::string_view end) {
    const size_t found = text.find(end, at);
    return found == std::string::npos ? text.size() : found + end.size();
  };
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("#include") || rest.starts_with("//")) {
      i = skip_to(i, "\n");
    } else if (rest.starts_with("/*")) {
      i = skip_to(i, "*/");
    } else if (rest.starts_with("R\"")) {
      const size_t open = text.find('(', i);
      i = skip_to(open, ")" + text.substr(i + 2, open - i - 2) + "\"");
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || std::isalnum(text[i - 1]) == 0))) {
      const char quote = text[i++];
      while (i < text.size() && text[i] != quote) i += text[i] == '\\' ? 2 : 1;
      ++i;
    } else {
      code += text[i++];
      continue;
    }
    code += ' ';
  }
  return code;
}

std::vector<std::string> identifiers_of(const std::string& code) {
  std::vector<std::string> out;
  for (size_t i = 0; i < code.size();) {
    size_t end = i;
    while (end < code.size() && (std::isalnum(code[end]) != 0 || code[end] == '_')) ++end;
    if (end > i && std::isdigit(code[i]) == 0) out.push_back(code.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

/// "HeadGuesser", "kNum_guesses" -> head, guesser; k, num, guesses.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(name[i]) != 0;
    const bool follows = i > 0 && std::isupper(name[i - 1]) == 0;
    const bool begins = i + 1 < name.size() && std::islower(name[i + 1]) != 0;
    if (name[i] == '_' || (upper && (follows || begins))) words.emplace_back();
    if (name[i] != '_') words.back() += static_cast<char>(std::tolower(name[i]));
  }
  return words;
}

bool is_in(const std::string& file, const std::vector<std::string>& places) {
  return places.empty() || std::any_of(places.begin(), places.end(), [&](const std::string& place) {
           return file == place || file.starts_with(place + "/");
         });
}

/// Old words of this identifier in this file, each with what is written instead.
std::string complaint(const std::string& file, const std::string& name) {
  const std::vector<std::string> words = words_of(name);
  for (const OldWords& old : old_words()) {
    if (!is_in(file, old.places)) continue;
    std::istringstream each(old.words);
    for (std::string word; each >> word;) {
      const bool whole = word.find('_') != std::string::npos || std::isupper(word[0]) != 0;
      if (whole ? name == word : std::find(words.begin(), words.end(), word) != words.end())
        return "'" + word + "', expected " + old.instead;
    }
  }
  return {};
}

}  // namespace

TEST(Words, OldWordsAreFoundInsideIdentifiersOnly) {
  EXPECT_EQ(words_of("kNumHTTPGuesses_"),
            (std::vector<std::string>{"k", "num", "http", "guesses", ""}));
  EXPECT_EQ(identifiers_of(code_of("int a1 = 1'000; // guess\n#include \"guess.h\"\n/* guess */ "
                                   "f(\"a \\\" guess\", 'g', R\"x(guess)x\", b_guess);")),
            (std::vector<std::string>{"int", "a1", "f", "b_guess"}));
  EXPECT_NE(complaint("infer/a.h", "b_guess"), "");
  EXPECT_NE(complaint("backbone/cpu/a.h", "kNumbers"), "");
  EXPECT_EQ(complaint("base/a.h", "kNumbers"), "");
}

TEST(Words, IdentifiersAreMadeOfTheGlossarysWords) {
  const std::filesystem::path root = MEDUSA_SOURCE_DIR;
  int64_t files = 0;
  for (const char* folder : {"base", "data", "backbone", "heads", "infer", "train", "server",
                             "runtime", "tools", "tests", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh")
        continue;
      const std::string file = entry.path().lexically_relative(root).generic_string();
      if (file == "tests/words_test.cpp") continue;
      ++files;
      std::ifstream in(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      const std::vector<std::string> names = identifiers_of(code_of(text.str()));
      for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
        if (is_kept(file, name)) continue;
        EXPECT_EQ(complaint(file, name), "") << file << ": " << name;
      }
    }
  }
  EXPECT_GT(files, 900);
}
