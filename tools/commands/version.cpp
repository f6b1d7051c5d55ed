#include "tools/commands/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output.h"
#include "tools/version.h"

namespace medusa {

void print_version(const std::vector<std::string>& arguments) {
  const bool as_json = arguments == std::vector<std::string>{"--json"};
  if (!arguments.empty() && !as_json)
    throw UserError(fmt::format("--version: found '{}', expected --json or nothing; leave it out",
                                arguments.back()));
  const Version found = version();
  if (as_json)
    print_json(nlohmann::json{{"version", found.version},
                              {"commit", found.commit},
                              {"libtorch", found.libtorch},
                              {"isa", found.isa},
                              {"cuda", found.cuda}});
  else
    print_text("{}\nLibTorch {}\nCPU kernels: {}\nCUDA kernels: {}\n", version_text(),
               found.libtorch, found.isa, found.cuda ? "yes" : "no");
}

}  // namespace medusa
