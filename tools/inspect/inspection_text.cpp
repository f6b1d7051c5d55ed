#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"
#include "tools/inspect/inspect.h"

namespace medusa {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 40;

/// "answer_tokens" -> "answer tokens".
std::string spoken_key(std::string key) {
  if (key.starts_with("num_")) key.erase(0, 4);
  if (key.ends_with("_bytes")) key.erase(key.size() - 6);
  if (key.find('.') == std::string::npos) std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string byte_text(double bytes) {
  for (const char* unit : {"bytes", "kB", "MB"}) {
    if (bytes < 1000) return fmt::format("{:.{}f} {}", bytes, unit[0] == 'b' ? 0 : 1, unit);
    bytes /= 1000;
  }
  return fmt::format("{:.2f} GB", bytes);
}

std::string value_text(const std::string& key, const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number() && key.ends_with("bytes")) return byte_text(value.get<double>());
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return std::abs(number) >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
  }
  if (!value.is_array()) return json_text(value);
  std::string text;
  for (const Json& each : value) text += (text.empty() ? "" : ", ") + value_text("", each);
  return "[" + text + "]";
}

bool is_table(const Json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

bool is_block(const Json& value) {
  return value.is_object() || is_table(value) ||
         (value.is_string() && value.get_ref<const std::string&>().find('\n') != std::string::npos);
}

/// Columns as wide as their widest cell; numbers to the right.
std::string table_text(const Json& rows, const std::string& indent) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : rows.front().items()) keys.push_back(key);
  std::vector<std::vector<std::string>> cells{{}};
  for (const std::string& key : keys) cells.front().push_back(spoken_key(key));
  const size_t shown = rows.size() > kMostRows + 2 ? kMostRows : rows.size();
  for (size_t i = 0; i < shown; ++i) {
    auto& line = cells.emplace_back();
    for (const std::string& key : keys)
      line.push_back(value_text(key, rows[i].value(key, Json(nullptr))));
  }
  std::vector<size_t> widths(keys.size(), 0);
  for (const auto& line : cells)
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string text;
  for (const auto& line : cells) {
    std::string row = indent;
    for (size_t c = 0; c < line.size(); ++c) {
      const bool number = rows.front()[keys[c]].is_number();
      row += number ? fmt::format("{:>{}}  ", line[c], widths[c])
                    : fmt::format("{:<{}}  ", line[c], widths[c]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  if (shown < rows.size())
    text += fmt::format("{}… {} more; --json lists all\n", indent, rows.size() - shown);
  return text;
}

std::string indented(const std::string& block, const std::string& indent) {
  std::string text;
  for (size_t begin = 0; begin < block.size();) {
    const size_t end = std::min(block.find('\n', begin), block.size());
    text += indent + block.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

std::string block_text(const Json& value, const std::string& indent);

/// Single values first, in one column, then the blocks.
std::string object_text(const Json& object, const std::string& indent) {
  size_t width = 0;
  for (const auto& [key, value] : object.items())
    if (!is_block(value)) width = std::max(width, spoken_key(key).size());
  std::string values, blocks;
  for (const auto& [key, value] : object.items()) {
    if (is_block(value))
      blocks +=
          fmt::format("\n{}{}\n{}", indent, spoken_key(key), block_text(value, indent + "  "));
    else
      values +=
          fmt::format("{}{:<{}}  {}\n", indent, spoken_key(key), width, value_text(key, value));
  }
  return values + blocks;
}

std::string block_text(const Json& value, const std::string& indent) {
  if (value.is_object()) return object_text(value, indent);
  if (value.is_array()) return table_text(value, indent);
  return indented(value.get<std::string>(), indent);
}

}  // namespace

std::string inspection_text(const Json& inspection) {
  Json rest = inspection;
  std::string text =
      fmt::format("{}: {}\n", inspection.value("kind", ""), inspection.value("path", ""));
  if (rest.contains("summary")) text += rest["summary"].get<std::string>() + "\n";
  for (const char* key : {"kind", "path", "summary"}) rest.erase(key);
  const std::string body = object_text(rest, "");
  return text + (body.starts_with('\n') ? "" : "\n") + body;
}

}  // namespace medusa
