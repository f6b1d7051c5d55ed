// Every name, type and number of the dataset format. data/dataset/FORMAT.md says what they mean.
#pragma once

#include <cstdint>
#include <string_view>

namespace medusa::dataset_format {

inline constexpr std::string_view kFormat = "medusa-dataset";
// A dataset has the first version that can hold it: the second one knows states of some answers
// alone and states in 8 bits.
inline constexpr int64_t kVersion = 1;
inline constexpr int64_t kVersionWithStates = 2;

// Attributes of the root group: fixed-length UTF-8 text, int64, or (seed) uint64.
inline constexpr char kChecksumAttribute[] = "checksum";
inline constexpr char kFormatAttribute[] = "format";
inline constexpr char kVersionAttribute[] = "version";
inline constexpr char kBackboneAttribute[] = "backbone";
inline constexpr char kTokenizerAttribute[] = "tokenizer";
inline constexpr char kPromptsAttribute[] = "prompts";
inline constexpr char kSamplingAttribute[] = "sampling";
inline constexpr char kSeedAttribute[] = "seed";
inline constexpr char kVocabSizeAttribute[] = "vocab_size";
inline constexpr char kHiddenSizeAttribute[] = "hidden_size";
inline constexpr char kStatesAttribute[] = "states";               // version 2
inline constexpr char kStatesBudgetAttribute[] = "states_budget";  // version 2
inline constexpr char kFirstAttribute[] = "first";
inline constexpr char kCountAttribute[] = "count";
inline constexpr char kTotalAttribute[] = "total";
inline constexpr char kLastAttribute[] = "last";

// Datasets.
inline constexpr char kTokens[] = "/tokens";                 // int32  [tokens]
inline constexpr char kOffsets[] = "/offsets";               // int64  [samples + 1]
inline constexpr char kAnswerStart[] = "/answer_start";      // int64  [samples]
inline constexpr char kPromptId[] = "/prompt_id";            // UTF-8  [samples]
inline constexpr char kHidden[] = "/hidden";                 // uint16 or int8 [rows, H]
inline constexpr char kHiddenScale[] = "/hidden_scale";      // float32 [rows], of int8 states
inline constexpr char kHiddenOffsets[] = "/hidden_offsets";  // int64  [samples + 1]

// Numbers above these are no dataset's: they are refused before anything is computed from them.
inline constexpr int64_t kMostVocabulary = 1 << 24;
inline constexpr int64_t kMostHiddenSize = 1 << 20;
inline constexpr int64_t kMostPrompts = int64_t{1} << 48;

// The checksum attribute: this word and 64 hexadecimal digits, the SHA-256 of the file's bytes with
// these digits as zeros. The word is searched for in the raw bytes, so that an altered file is
// found out before HDF5 has to make sense of it.
inline constexpr std::string_view kChecksumWord = "medusa-sha256:";
inline constexpr size_t kChecksumDigits = 64;

}  // namespace medusa::dataset_format
