#include "tools/measure/head_quality.h"

#include <nlohmann/json.hpp>

#include "base/output.h"

namespace medusa {

nlohmann::ordered_json quality_json(const std::vector<HeadQuality>& heads) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const HeadQuality& head : heads)
    out.push_back({{"loss", head.loss},
                   {"top_1", head.top_1},
                   {"top_5", head.top_5},
                   {"top_10", head.top_10}});
  return out;
}

void print_quality(const std::vector<HeadQuality>& heads) {
  for (size_t k = 0; k < heads.size(); ++k)
    print_note("head {}: top-1 {:.3f}  top-5 {:.3f}  top-10 {:.3f}\n", k, heads[k].top_1,
               heads[k].top_5, heads[k].top_10);
}

}  // namespace medusa
