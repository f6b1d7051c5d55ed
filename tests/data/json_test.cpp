#include "data/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

TEST(JsonLines, BlankLinesCountAndTheLastNeedsNoEnd) {
  const fixtures::TempFolder folder;
  write_file(folder / "a.jsonl", "{\"x\": 1}\r\n\n \t\r\n[2]\n3");
  std::vector<std::string> found;
  read_json_lines(folder / "a.jsonl", [&](const nlohmann::json& value, const JsonLine& line) {
    EXPECT_EQ(line.place, (folder / "a.jsonl").string() + line.id.substr(1));
    found.push_back(line.id + " " + value.dump());
  });
  EXPECT_EQ(found, (std::vector<std::string>{"a:1 {\"x\":1}", "a:4 [2]", "a:5 3"}));
}

TEST(EntryId, IsTextOfAnyKindThatADatasetCanHold) {
  using nlohmann::json;
  EXPECT_EQ(entry_id(json{{"id", "a b"}}, "p:1", "x"), "a b");
  EXPECT_EQ(entry_id(json{{"id", 7}}, "p:1", "x"), "7");
  EXPECT_EQ(entry_id(json{{"id", nullptr}}, "p:1", "x"), "x");
  EXPECT_EQ(entry_id(json::array(), "p:1", "x"), "x");
  EXPECT_EQ(entry_id(json{{"id", std::string(1024, 'a')}}, "p:1", "x").size(), 1024u);
  const auto error = [](const std::string& id) {
    return fixtures::error_text([&] { entry_id(json{{"id", id}}, "p:1", "x"); });
  };
  EXPECT_EQ(error(std::string(1025, 'a')),
            "p:1: 'id' has 1025 bytes, expected at most 1024; shorten it");
  EXPECT_EQ(error(std::string("a\0b", 3)), "p:1: 'id' holds a zero byte, expected text; remove it");
}

TEST(JsonLines, ALineThatIsNotJsonIsNamed) {
  const fixtures::TempFolder folder;
  const auto error = [&](const std::string& text) {
    write_file(folder / "a.jsonl", text);
    return fixtures::error_text(folder, [&] {
      read_json_lines(folder / "a.jsonl", [](const nlohmann::json&, const JsonLine&) {});
    });
  };
  EXPECT_EQ(error("1\n{\"a\": \n"),
            "<>/a.jsonl:2: is not JSON (at byte 7 of the line), expected one JSON object per line; "
            "correct or remove it");
  EXPECT_EQ(error(std::string(100'000, '[')),
            "<>/a.jsonl:1: nests lists or objects more than 100 deep, expected one JSON object per "
            "line; correct or remove it");
  EXPECT_EQ(error(std::string("{\"a\": 1}\0{}", 11)),
            "<>/a.jsonl:1: is not JSON (at byte 9 of the line), expected one JSON object per line; "
            "correct or remove it");
  EXPECT_EQ(error("{\"a\": 1e999}"),
            "<>/a.jsonl:1: has a number beyond all bounds, expected one JSON object per line; "
            "correct or remove it");
}

}  // namespace
}  // namespace medusa
