#include "train/train_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace medusa {

void check_stages(const std::vector<StageKind>& stages) {
  std::string found;
  for (const StageKind stage : stages) found += (found.empty() ? "" : ", ") + enum_name(stage);
  if (stages.empty())
    throw UserError(
        "train.stages is [], found no stage, expected one or both of heads and joint; write "
        "[heads] or [heads, joint]");
  for (const StageKind stage : stages)
    if (std::count(stages.begin(), stages.end(), stage) > 1)
      throw UserError(
          fmt::format("train.stages is [{}], found {} twice, expected each stage once; remove one",
                      found, enum_name(stage)));
  if (stages.size() == 2 && stages[0] == StageKind::Joint)
    throw UserError(
        fmt::format("train.stages is [{}], found heads behind joint, expected it before: heads "
                    "alone learn from the backbone as it was, not from what joint made of it; "
                    "write [heads, joint]",
                    found));
}

}  // namespace medusa
