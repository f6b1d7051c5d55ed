#include "heads/heads_config.h"

#include <fmt/format.h>

#include "base/error.h"

namespace medusa {

void HeadsConfig::validate() const {
  if (output_rank % 32 != 0)  // whole tiles of decoding's GEMMs
    throw UserError(
        fmt::format("heads: 'output_rank' is {}, which leaves {} over when divided by 32, expected "
                    "a multiple of 32; write {}",
                    output_rank, output_rank % 32, output_rank / 32 * 32 + 32));
  if (correction_rank % 32 != 0)
    throw UserError(fmt::format(
        "heads: 'correction_rank' is {}, which leaves {} over when divided by 32, expected a "
        "multiple of 32; write {}",
        correction_rank, correction_rank % 32, correction_rank / 32 * 32 + 32));
  if (correction_rank > 0 && reads_paths(input))
    throw UserError(fmt::format(
        "heads: 'correction_rank' is {}, 'input' is {}, whose heads read the tokens drafted before "
        "anyway, expected 0 there; set it to 0, or 'input' to {}",
        correction_rank, enum_name(input), has_prefix(input) ? "prefix" : "root"));
  if (correction_rank > 0 && num_heads < 2)
    throw UserError(fmt::format(
        "heads: 'correction_rank' is {}, 'num_heads' is {}, expected at least 2 heads, as the "
        "first "
        "one has no draft before its own; set 'correction_rank' to 0 or train more heads",
        correction_rank, num_heads));
  if (start == HeadStart::LastLayer && !has_prefix(input))
    throw UserError(
        fmt::format("heads: 'start' is {}, 'input' is {}, expected prefix or prefix_sequential, "
                    "which have a layer that can begin so; set 'input' to one of them, or 'start' "
                    "to random",
                    enum_name(start), enum_name(input)));
}

}  // namespace medusa
