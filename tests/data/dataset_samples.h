// Small datasets made from a seed, for the tests of everything that reads or writes them.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/random.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/dataset_writer.h"

namespace medusa::fixtures {

inline DatasetInfo small_info(int64_t hidden_size = 3) {
  return {.backbone = "sha256:b0",
          .tokenizer = "sha256:70",
          .prompts = "sha256:99",
          .sampling = "temperature: 0.7\ntop_p: 0.9\n",
          .seed = 18446744073709551615u,
          .vocab_size = 100,
          .hidden_size = hidden_size};
}

/// Sample i of a seed; its lengths differ from those of its neighbors.
inline Sample small_sample(int64_t i, int64_t hidden_size = 3) {
  const Random random = Random(7).child(static_cast<uint64_t>(i));
  Sample sample;
  sample.prompt_id = "prompt " + std::to_string(i) + (i % 2 == 0 ? " – grüß" : "");
  sample.answer_start = 1 + i % 3;
  const int64_t length = sample.answer_start + 1 + i % 4;
  for (int64_t t = 0; t < length; ++t)
    sample.tokens.push_back(static_cast<TokenId>(random.uniform(RandomUse::Init, t) * 100));
  for (int64_t h = 0; h < sample.answer_length() * hidden_size; ++h)
    sample.hidden.push_back(static_cast<uint16_t>(random.bits(RandomUse::Init, -1 - h)));
  return sample;
}

/// Writes samples 0 ... count - 1 in order.
inline void write_small_dataset(const std::filesystem::path& folder, int64_t count,
                                int64_t shard_size, int64_t hidden_size = 3) {
  DatasetWriter writer(folder, small_info(hidden_size), count, shard_size);
  for (int64_t i = 0; i < count; ++i)
    if (!writer.has(i)) writer.add(i, small_sample(i, hidden_size));
}

/// Name -> bytes of every file in the folder.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

inline void overwrite(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace medusa::fixtures
