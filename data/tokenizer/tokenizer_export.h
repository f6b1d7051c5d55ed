// The tokenizer of a GGUF file beside a model that was made from it.
#pragma once

#include <filesystem>

namespace medusa {

/// In a model folder: the metadata of a GGUF file that concern the tokenizer, and no tensors. What
/// load_tokenizer() prefers there: it is the same tokenizer, fingerprint included.
inline constexpr const char* kTokenizerGguf = "tokenizer.gguf";

/// Writes tokenizer.gguf and, of a byte-level BPE, also tokenizer.json and tokenizer_config.json as
/// transformers reads them. (Of a SentencePiece tokenizer transformers reads tokenizer.gguf:
/// AutoTokenizer.from_pretrained(folder, gguf_file="tokenizer.gguf").)
/// @throws UserError  the file's tokenizer is of a kind we do not read; the folder cannot be
///                    written.
void export_tokenizer(const std::filesystem::path& gguf, const std::filesystem::path& folder);

}  // namespace medusa
