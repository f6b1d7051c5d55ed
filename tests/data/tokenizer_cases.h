// Small tokenizers of our own, and the ids that the packages of other projects make of some texts.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/token.h"
#include "data/json.h"

namespace medusa::fixtures {

/// One of tests/golden/tokenizers: a file, or a folder.
inline std::filesystem::path small_tokenizer(const std::string& name) {
  return std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/tokenizers" / name;
}

/// The demo's model. @throws UserError  it is not there; tools/test.sh gets it.
inline std::filesystem::path demo_model() {
  const auto path =
      std::filesystem::path(MEDUSA_SOURCE_DIR) / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path))
    throw UserError(path.string() +
                    ": no such file, expected the demo's model; run tools/get_demo_model.sh");
  return path;
}

/// tests/golden/tokenizer_cases.json, made by tools/dev/make_tokenizer_golden.py.
inline const Json& tokenizer_golden() {
  static const Json kGolden =
      read_json_file(MEDUSA_SOURCE_DIR "/tests/golden/tokenizer_cases.json");
  return kGolden;
}

/// Texts and the ids of a tokenizer of this name there.
inline std::vector<std::pair<std::string, std::vector<TokenId>>> tokenizer_cases(
    const std::string& name) {
  const Json& texts = tokenizer_golden().at("texts");
  const Json& ids = tokenizer_golden().at("ids").at(name);
  std::vector<std::pair<std::string, std::vector<TokenId>>> cases;
  for (size_t i = 0; i < texts.size(); ++i)
    cases.emplace_back(texts.at(i).get<std::string>(), ids.at(i).get<std::vector<TokenId>>());
  return cases;
}

}  // namespace medusa::fixtures
