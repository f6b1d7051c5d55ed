// The number formats of tensors in a GGUF file: names and block sizes. No arithmetic on them.
#pragma once

#include <cstdint>
#include <string_view>

namespace medusa {

/// The values are the ids of the file format. Ids 4, 5, 31 to 33 and 36 to 38 were withdrawn.
enum class GgmlType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
};

/// Numbers are stored in blocks along the first (fastest) dimension; plain types have blocks of 1.
struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;  // "Q4_1"
  int64_t block_size;     // numbers in a block
  int64_t block_bytes;
};

/// nullptr for an id we do not know.
const GgmlTypeInfo* find_ggml_type(uint32_t id);

/// Of a type that is in the enumeration.
const GgmlTypeInfo& ggml_type_info(GgmlType type);

}  // namespace medusa
