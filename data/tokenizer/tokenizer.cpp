#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/formats/gguf_file.h"
#include "data/json.h"
#include "data/tokenizer/tokenizer_export.h"
#include "data/tokenizer/tokenizer_files.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

std::unique_ptr<Tokenizer> from_gguf(const fs::path& path) {
  const GgufFile file(path);
  const auto model = file.required<std::string>("tokenizer.ggml.model");
  if (model == "gpt2") return std::make_unique<BpeTokenizer>(bpe_from_gguf(file));
  if (model == "llama" || model == "t5")
    return std::make_unique<SentencePieceTokenizer>(sentencepiece_from_gguf(file));
  throw UserError(
      fmt::format("{}: tokenizer.ggml.model is '{}', expected 'gpt2' (byte-level BPE), 'llama' or "
                  "'t5' (SentencePiece); use a model with one of these tokenizers",
                  path.string(), model));
}

/// How text is cut into words follows from the class that tokenizer_config.json names.
std::unique_ptr<Tokenizer> from_vocab(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path))
    throw UserError(fmt::format(
        "{}: has vocab.json and merges.txt, but no tokenizer_config.json that says of which family "
        "they are, expected one or tokenizer.json; download the whole folder",
        folder.string()));
  const auto name = need_json<std::string>(read_json_file(path), "tokenizer_class", path.string());
  if (name == "GPT2Tokenizer" || name == "GPT2TokenizerFast")
    return std::make_unique<BpeTokenizer>(bpe_from_vocab(folder, "gpt-2"));
  if (name == "Qwen2Tokenizer" || name == "Qwen2TokenizerFast")
    return std::make_unique<BpeTokenizer>(bpe_from_vocab(folder, "qwen2", Normalization::Nfc));
  throw UserError(fmt::format(
      "{}: 'tokenizer_class' is '{}', expected GPT2Tokenizer or Qwen2Tokenizer; add the model's "
      "tokenizer.json to the folder",
      path.string(), name));
}

}  // namespace

void refuse_vocabulary(const std::string& source, const std::string& found,
                       const std::string& expected) {
  throw UserError(fmt::format("{}: {}, expected {}; convert or download the tokenizer again",
                              source, found, expected));
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& model) {
  if (!fs::is_directory(model)) {
    if (model.extension() == ".json") return tokenizer_from_json(model);
    if (model.extension() == ".model")
      return std::make_unique<SentencePieceTokenizer>(sentencepiece_from_model(model));
    return from_gguf(model);
  }
  if (fs::exists(model / kTokenizerGguf)) return from_gguf(model / kTokenizerGguf);
  if (fs::exists(model / "tokenizer.json")) return tokenizer_from_json(model / "tokenizer.json");
  if (fs::exists(model / "tokenizer.model"))
    return std::make_unique<SentencePieceTokenizer>(
        sentencepiece_from_model(model / "tokenizer.model"));
  if (fs::exists(model / "vocab.json") && fs::exists(model / "merges.txt"))
    return from_vocab(model);
  throw UserError(
      fmt::format("{}: holds no tokenizer, expected tokenizer.json, tokenizer.model, or vocab.json "
                  "and merges.txt; add the file that came with the model",
                  model.string()));
}

}  // namespace medusa
