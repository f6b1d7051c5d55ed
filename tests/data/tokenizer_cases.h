// Tokenizers and their published cases from the data beside the checkout.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/token.h"

namespace medusa::fixtures {

inline std::filesystem::path tokenizer_folder(const std::string& name) {
  return std::filesystem::path(MEDUSA_SHARED_DATA) / "tokenizers" / name;
}

inline std::filesystem::path smollm2_path() {
  return std::filesystem::path(MEDUSA_SOURCE_DIR) / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

/// Texts (cases.inp, a separator line behind each) and their ids (cases.out, a line for each).
inline std::vector<std::pair<std::string, std::vector<TokenId>>> read_cases(
    const std::filesystem::path& folder) {
  const std::string texts = read_file(folder / "cases.inp");
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::istringstream lines(read_file(folder / "cases.out"));
  std::vector<std::pair<std::string, std::vector<TokenId>>> cases;
  size_t begin = 0;
  for (size_t end = 0; (end = texts.find(separator, begin)) != std::string::npos;
       begin = end + separator.size()) {
    std::string line;
    std::getline(lines, line);
    std::istringstream numbers(line);
    std::vector<TokenId> ids;
    for (TokenId id = 0; numbers >> id;) ids.push_back(id);
    cases.emplace_back(texts.substr(begin, end - begin), std::move(ids));
  }
  return cases;
}

}  // namespace medusa::fixtures
