// Where tokenizers are kept: GGUF metadata, tokenizer.json, tokenizer.model, vocab.json with
// merges.txt.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace medusa {

class GgufFile;

/// Of a file whose tokenizer.ggml.model is "gpt2".
/// @throws UserError  a key is missing, mistyped or of another length than the others.
BpeParts bpe_from_gguf(const GgufFile& file);

/// Of a file whose tokenizer.ggml.model is "llama" (BPE) or "t5" (unigram). The same errors.
SentencePieceParts sentencepiece_from_gguf(const GgufFile& file);

/// Of a tokenizer.json with a byte-level BPE model, or with a SentencePiece model: BPE or unigram
/// over marked spaces. bos, eos and the chat template come from the files beside it, where they
/// are.
/// @throws UserError  not JSON, another kind of tokenizer, ids that are not 0 … V - 1.
std::unique_ptr<Tokenizer> tokenizer_from_json(const std::filesystem::path& file);

/// Of a SentencePiece tokenizer.model; added tokens, bos, eos and the chat template come from the
/// files beside it, where they are.
/// @throws UserError  no such model, or a kind that is neither BPE nor unigram.
SentencePieceParts sentencepiece_from_model(const std::filesystem::path& file);

/// Of a folder with vocab.json and merges.txt, the layout from before tokenizer.json. It does not
/// say how text is normalized and cut into words.
/// @param pre  a name for PreTokenizer::named().
BpeParts bpe_from_vocab(const std::filesystem::path& folder, std::string_view pre,
                        Normalization form = Normalization::None);

}  // namespace medusa
