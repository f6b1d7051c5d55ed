#include "data/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "data/text_file.h"

namespace medusa {

Json read_json_file(const std::filesystem::path& path) {
  return parse_json_text(read_file(path), path);
}

Json parse_json_text(const std::string& text, const std::filesystem::path& file) {
  if (nests_too_deeply(text))
    throw UserError(
        fmt::format("{}: nests lists or objects more than 100 deep, expected at most that; copy or "
                    "download it again",
                    file.string()));
  const auto not_json = [&](size_t byte) {
    return UserError(
        fmt::format("{}: is not JSON (at byte {}), expected a JSON file; copy or download it again",
                    file.string(), byte));
  };
  const size_t zero = text.find('\0');
  if (zero != std::string::npos) throw not_json(zero + 1);  // the parser would take it for the end
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw not_json(error.byte);
  } catch (const Json::out_of_range&) {
    throw UserError(
        fmt::format("{}: has a number beyond all bounds, expected one that fits into 64 bits; copy "
                    "or download it again",
                    file.string()));
  }
}

bool is_json_list(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '[') return false;
  const size_t end = std::min(text.find('\n', begin), text.size());
  const bool is_one_line = text.find_first_not_of(" \t\r\n", end) == std::string::npos;
  if (is_one_line) return true;
  const std::string line = text.substr(begin, end - begin);
  return nests_too_deeply(line) || !Json::accept(line);
}

std::string entry_id(const nlohmann::json& entry, const std::string& place,
                     const std::string& fallback) {
  constexpr size_t kLongestId = 1024;
  const auto found = find_json<nlohmann::json>(entry, "id", place);
  if (!found) return fallback;
  std::string id = found->is_string() ? found->get<std::string>() : json_text(*found);
  if (id.size() > kLongestId)
    throw UserError(fmt::format("{}: 'id' has {} bytes, expected at most {}; shorten it", place,
                                id.size(), kLongestId));
  if (id.find('\0') != std::string::npos)
    throw UserError(fmt::format("{}: 'id' holds a zero byte, expected text; remove it", place));
  return id;
}

void read_json_lines(const std::filesystem::path& file,
                     const std::function<void(const nlohmann::json&, const JsonLine&)>& read) {
  parse_json_lines(read_text(file), file, read);
}

void parse_json_lines(const std::string& text, const std::filesystem::path& file,
                      const std::function<void(const nlohmann::json&, const JsonLine&)>& read) {
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const JsonLine known{fmt::format("{}:{}", file.string(), number),
                         fmt::format("{}:{}", file.stem().string(), number)};
    const auto fail = [&](const std::string& found) {
      throw UserError(fmt::format("{}: {}, expected one JSON object per line; correct or remove it",
                                  known.place, found));
    };
    if (nests_too_deeply(line)) fail("nests lists or objects more than 100 deep");
    const size_t zero = line.find('\0');  // the parser would take it for the end
    if (zero != std::string::npos)
      fail(fmt::format("is not JSON (at byte {} of the line)", zero + 1));
    nlohmann::json value;
    try {
      value = nlohmann::json::parse(line);
    } catch (const nlohmann::json::parse_error& error) {
      fail(fmt::format("is not JSON (at byte {} of the line)", error.byte));
    } catch (const nlohmann::json::out_of_range&) {
      fail("has a number beyond all bounds");
    }
    read(value, known);
  }
}

}  // namespace medusa
