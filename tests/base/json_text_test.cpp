#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace medusa {
namespace {

using nlohmann::json;

template <typename Wrong>
std::string text_of(const Wrong& wrong) {
  try {
    wrong();
  } catch (const json::exception& error) {
    return json_error_text(error.what());
  }
  return "nothing";
}

TEST(JsonErrorText, SaysWhatIsWrongInWordsOfTheFile) {
  EXPECT_EQ(text_of([] { return json::parse("{\n \"a\": \xCC}"); }),
            "not JSON at line 2, column 7");
  EXPECT_EQ(text_of([] { return json::parse(""); }), "not JSON at line 1, column 1");
  EXPECT_EQ(text_of([] { return json::object().at("rows"); }), "key 'rows' not found");
  EXPECT_EQ(text_of([] { return json::array().at("rows"); }), "is array, not an object");
  EXPECT_EQ(text_of([] { return json(7).get<std::string>(); }),
            "type must be string, but is number");
}

TEST(JsonErrorText, NamesNoClassOfTheLibrary) {
  const auto wrongs = {text_of([] { return json::parse("1e400"); }),
                       text_of([] { return json::array().at(3); }),
                       text_of([] { return json(7).at(3); })};
  for (const std::string& text : wrongs) {
    EXPECT_NE(text, "nothing");
    EXPECT_EQ(text.find("json."), std::string::npos) << text;
    EXPECT_EQ(text.find("()"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace medusa
