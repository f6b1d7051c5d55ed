#include "runtime/question_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/fingerprint.h"
#include "base/json_text.h"

namespace medusa {
namespace {

constexpr const char *kMadeWith = "made_with", *kLines = "lines";  // in the first line

std::string in_one_line(const nlohmann::json& value) { return json_text(value) + "\n"; }

std::string fingerprint_lines(const std::string& first, std::string_view others) {
  return Fingerprint().add(first).add(others).digest();
}

}  // namespace

std::string question_lines(const std::vector<std::string>& questions,
                           const std::string& made_with) {
  nlohmann::json first;
  std::string others;
  for (size_t i = 0; i < questions.size(); ++i) {
    nlohmann::json line{{"id", fmt::format("self/{}", i)}, {"text", questions[i]}};
    if (i == 0)
      first = std::move(line);
    else
      others += in_one_line(line);
  }
  const std::string fingerprint = fingerprint_lines(in_one_line(first), others);
  first.update({{kMadeWith, made_with}, {kLines, fingerprint}});
  return in_one_line(first) + others;
}

std::string questions_made_with(std::string_view lines) {
  const size_t end = lines.find('\n');
  if (end == std::string_view::npos) return "";
  nlohmann::json first = nlohmann::json::parse(lines.substr(0, end), nullptr, false);
  if (!first.is_object() || !first.contains(kMadeWith) || !first[kMadeWith].is_string()) return "";
  const std::string made_with = first[kMadeWith].get<std::string>();
  const nlohmann::json fingerprint = first.value(kLines, nlohmann::json());
  first.erase(kMadeWith);
  first.erase(kLines);
  const std::string_view others = lines.substr(end + 1);
  return fingerprint == fingerprint_lines(in_one_line(first), others) ? made_with : "";
}

}  // namespace medusa
