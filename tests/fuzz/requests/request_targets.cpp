// The targets of fuzz_requests: what clients of the server send.
#include "tests/fuzz/guarded_reader.h"

namespace medusa::fuzz {

const std::vector<FuzzTarget>& all_targets() {
  static const std::vector<FuzzTarget> targets = [] {
    auto all = body_targets();
    for (auto& target : http_targets()) all.push_back(std::move(target));
    return all;
  }();
  return targets;
}

}  // namespace medusa::fuzz
