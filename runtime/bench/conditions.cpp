#include "runtime/bench/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace {

std::string value_of(const Conditions& conditions, const std::string& name) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == conditions.end() ? "unknown" : found->second;
}

}  // namespace

void check_comparable(const std::filesystem::path& file, const Conditions& earlier,
                      const Conditions& now) {
  for (const auto& [name, value] : now)
    if (const std::string before = value_of(earlier, name); before != value)
      throw UserError(fmt::format(
          "{}: measured with {} {}, this run has {}, expected the same {} for all that is compared "
          "in a folder; give another folder with --out, or remove bench.json and bench.jsonl there",
          file.string(), name, before, value, name));
}

Conditions read_conditions(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    Conditions out;
    const auto root = nlohmann::json::parse(text);
    for (const auto& each : root.at("conditions"))
      out.emplace_back(each.at("name").get<std::string>(), each.at("value").get<std::string>());
    return out;
  } catch (const nlohmann::json::exception& error) {
    throw UserError(
        fmt::format("{}: {}, expected the summary that medusa bench writes; remove it and "
                    "bench.jsonl, or give another folder with --out",
                    file.string(), json_error_text(error.what())));
  }
}

}  // namespace medusa
