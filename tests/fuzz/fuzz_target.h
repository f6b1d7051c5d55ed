// A reader of foreign files, as the fuzzer sees it.
#pragma once

#include <functional>
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
};

std::vector<FuzzTarget> container_targets();  // safetensors, GGUF, config.json
std::vector<FuzzTarget> text_targets();       // tokenizer.json, tokenizer.model, chat templates

}  // namespace medusa::fuzz
