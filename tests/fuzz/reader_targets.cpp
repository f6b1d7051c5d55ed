// The targets of fuzz_readers: files.
#include "tests/fuzz/guarded_reader.h"

namespace medusa::fuzz {

const std::vector<FuzzTarget>& all_targets() {
  static const std::vector<FuzzTarget> targets = [] {
    auto all = container_targets();
    for (auto more : {torch_targets(), text_targets(), text_file_targets(), shard_targets()})
      for (auto& target : more) all.push_back(std::move(target));
    return all;
  }();
  return targets;
}

}  // namespace medusa::fuzz
