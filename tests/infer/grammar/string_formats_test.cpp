// Texts of each format, and texts that are nearly of it.
#include "infer/grammar/string_formats.h"

#include <gtest/gtest.h>

#include <regex>

#include "infer/grammar/regex_syntax.h"

namespace medusa {
namespace {

bool is_of(const std::string& format, const std::string& text) {
  return std::regex_match(text, std::regex(pattern_of_format(format)));
}

TEST(StringFormats, TextsOfAFormatMatch) {
  for (const auto& [format, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"date", "2024-02-29"},
           {"date", "2000-02-29"},
           {"date", "1999-12-31"},
           {"date", "2023-04-30"},
           {"time", "23:59:59Z"},
           {"time", "00:00:00.5+14:00"},
           {"date-time", "2026-11-28T12:00:00Z"},
           {"duration", "P1Y2M3DT4H5M6S"},
           {"duration", "PT5M"},
           {"duration", "P3W"},
           {"email", "a.b+c@example.co.uk"},
           {"hostname", "a-1.example"},
           {"ipv4", "0.10.200.255"},
           {"ipv6", "::"},
           {"ipv6", "::1"},
           {"ipv6", "fe80::1:2"},
           {"ipv6", "1:2:3:4:5:6:7:8"},
           {"ipv6", "1::"},
           {"uri", "https://me@example.com:80/a/b?c=d#e"},
           {"uri", "mailto:a@b.c"},
           {"uri", "urn:x:y"},
           {"uri-reference", "../a?b"},
           {"uri-reference", ""},
           {"uri-reference", "http://a"},
           {"uuid", "123e4567-e89b-12d3-a456-426614174000"},
           {"json-pointer", ""},
           {"json-pointer", "/a~1b/0"}})
    EXPECT_TRUE(is_of(format, text)) << format << " " << text;
}

TEST(StringFormats, OtherTextsDoNot) {
  for (const auto& [format, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"date", "2023-02-29"},    {"date", "1900-02-29"},
           {"date", "2023-04-31"},    {"date", "2023-13-01"},
           {"date", "2023-00-10"},    {"date", "23-01-01"},
           {"time", "24:00:00Z"},     {"time", "12:00:00"},
           {"time", "12:00Z"},        {"date-time", "2026-11-28 12:00:00Z"},
           {"duration", "P"},         {"duration", "P1DT"},
           {"duration", "P1Y2D"},     {"email", "a"},
           {"email", ".a@b"},         {"email", "a@b..c"},
           {"email", "\"a\"@b"},      {"hostname", "-a"},
           {"hostname", "a-"},        {"hostname", "a..b"},
           {"ipv4", "022.1.1.1"},     {"ipv4", "256.1.1.1"},
           {"ipv4", "1.1.1"},         {"ipv6", ":::"},
           {"ipv6", "1:2:3:4:5:6:7"}, {"ipv6", "1::2::3"},
           {"ipv6", "12345::"},       {"ipv6", "1:2:3:4:5:6:7:8:9"},
           {"uri", "a b:c"},          {"uri", "//a"},
           {"uri", "http://a/%zz"},   {"uuid", "123e4567e89b12d3a456426614174000"},
           {"json-pointer", "a"},     {"json-pointer", "/~2"}})
    EXPECT_FALSE(is_of(format, text)) << format << " " << text;
}

TEST(StringFormats, EachIsAnExpressionForAStringOfJson) {
  for (const char* each : {"date", "time", "date-time", "duration", "email", "hostname", "ipv4",
                           "ipv6", "uri", "uri-reference", "uuid", "json-pointer"})
    EXPECT_NO_THROW(regex_of_json_string(pattern_of_format(each))) << each;
  EXPECT_EQ(pattern_of_format("password"), "");
}

}  // namespace
}  // namespace medusa
