#include <gtest/gtest.h>

#include "base/file.h"
#include "runtime/bench/conditions.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

const Conditions kConditions = {{"model", "sha256:4f0c"}, {"dtype", "bfloat16"}, {"threads", "2"}};

TEST(Conditions, EqualOnesPass) {
  EXPECT_EQ(fixtures::error_text([] { check_comparable("b.json", kConditions, kConditions); }),
            "(no error)");
}

TEST(Conditions, TheFirstDifferenceIsNamed) {
  const Conditions now = {{"model", "sha256:4f0c"}, {"dtype", "float32"}, {"threads", "1"}};
  EXPECT_EQ(fixtures::error_text([&] { check_comparable("runs/x/bench.json", kConditions, now); }),
            "runs/x/bench.json: measured with dtype bfloat16, this run has float32, expected the "
            "same dtype for all that is compared in a folder; give another folder with --out, or "
            "leave out what was measured there with --fresh");
}

TEST(Conditions, OneThatWasNotWrittenDownIsUnknown) {
  const std::string text = fixtures::error_text([] {
    check_comparable("b.json", {{"model", "sha256:4f0c"}}, kConditions);
  });
  EXPECT_NE(text.find("measured with dtype unknown, this run has bfloat16"), std::string::npos)
      << text;
}

TEST(Conditions, ThoseOfOtherMethodsAreJoined) {
  const Conditions heads{{"heads", "sha256:1"}}, others{{"heads", "sha256:2"}},
      store{{"store", "sha256:3"}};
  EXPECT_EQ(joined_conditions("b.json", heads, store),
            (Conditions{{"store", "sha256:3"}, {"heads", "sha256:1"}}));
  EXPECT_EQ(joined_conditions("b.json", {}, heads), heads);
  EXPECT_NE(fixtures::error_text([&] {
              joined_conditions("b.json", heads, others);
            }).find("measured with heads sha256:1, this run has sha256:2"),
            std::string::npos);
}

TEST(Conditions, AFileOfSomethingElseIsRefused) {
  const fixtures::TempFolder folder;
  write_file(folder / "bench.json", "{}");
  EXPECT_EQ(fixtures::error_text([&] { read_conditions(folder / "bench.json"); }),
            (folder / "bench.json").string() +
                ": key 'conditions' not found, expected the "
                "summary that medusa bench writes; remove it and bench.jsonl, or give another "
                "folder with --out");
}

}  // namespace
}  // namespace medusa
