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
            "remove bench.json and bench.jsonl there");
}

TEST(Conditions, OneThatWasNotWrittenDownIsUnknown) {
  const std::string text = fixtures::error_text([] {
    check_comparable("b.json", {{"model", "sha256:4f0c"}}, kConditions);
  });
  EXPECT_NE(text.find("measured with dtype unknown, this run has bfloat16"), std::string::npos)
      << text;
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
