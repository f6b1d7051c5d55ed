// A reader of foreign files or requests, as the fuzzer sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace medusa::fuzz {

struct FuzzTarget {
  std::string name;
  std::string file;                 // what the reader expects its file to be called
  std::vector<std::string> seeds;   // small valid files; all are kept by a clean run
  std::vector<std::string> tokens;  // words of the format, to be put anywhere
  /// Reads the file and uses what came out. Ends in a UserError or in nothing.
  std::function<void(const std::string& path)> run;
  /// The file that an input stands for; null: the input itself.
  std::function<std::string(std::string_view input)> file_of = nullptr;
  /// Memory that one input may take at once, besides twice its own size.
  size_t spare_bytes = size_t{64} << 20;
  double slow_seconds = 1;  // CPU time for one input
  /// Files that were findings once: each must be refused.
  std::vector<std::string> past_findings = {};
};

/// Reads every byte, so that a span that leaves the file is seen.
inline void touch(std::span<const uint8_t> bytes) {
  uint8_t all = 0;
  for (const uint8_t byte : bytes) all |= byte;
  [[maybe_unused]] volatile const uint8_t used = all;
}

std::vector<FuzzTarget> container_targets();  // safetensors, GGUF, config.json
std::vector<FuzzTarget> torch_targets();      // files of torch.save and the pickles in them
std::vector<FuzzTarget> text_targets();       // tokenizer.json, tokenizer.model, chat templates
std::vector<FuzzTarget> text_file_targets();  // prompts and choice trees
std::vector<FuzzTarget> shard_targets();      // shards of a dataset
std::vector<FuzzTarget> body_targets();       // bodies of requests, and schemas in them
std::vector<FuzzTarget> http_targets();       // what a connection says

}  // namespace medusa::fuzz
