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
  if (start == HeadStart::LastLayer && !has_prefix(input))
    throw UserError(
        fmt::format("heads: 'start' is {}, 'input' is {}, expected prefix or prefix_sequential, "
                    "which have a layer that can begin so; set 'input' to one of them, or 'start' "
                    "to random",
                    enum_name(start), enum_name(input)));
}

}  // namespace medusa
