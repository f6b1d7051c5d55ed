#include "runtime/bench/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace {

std::optional<std::string> value_of(const Conditions& conditions, const std::string& name) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const auto& each) { return each.first == name; });
  if (found == conditions.end()) return std::nullopt;
  return found->second;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& name,
                         const std::string& before, const std::string& now) {
  throw UserError(fmt::format(
      "{}: measured with {} {}, this run has {}, expected the same {} for all that is compared in "
      "a folder; give another folder with --out, or leave out what was measured there with --fresh",
      file.string(), name, before, now, name));
}

}  // namespace

void check_comparable(const std::filesystem::path& file, const Conditions& earlier,
                      const Conditions& now) {
  for (const auto& [name, value] : now)
    if (const auto before = value_of(earlier, name); before != value)
      refuse(file, name, before.value_or("unknown"), value);
}

Conditions joined_conditions(const std::filesystem::path& file, const Conditions& earlier,
                             const Conditions& now) {
  Conditions out = now;
  for (const auto& [name, before] : earlier) {
    const auto value = value_of(now, name);
    if (!value) out.emplace_back(name, before);
    if (value && *value != before) refuse(file, name, before, *value);
  }
  return out;
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
