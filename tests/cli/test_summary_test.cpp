// The line that tools/test.sh ends with: tools/test_summary.py over what ctest writes.
#include "program.h"

namespace medusa::cli {
namespace {

/// @param cases  elements of a JUnit file.
ProcessResult summed_up(const std::string& cases) {
  const fixtures::TempFolder folder;
  write_text(folder / "results.xml", "<testsuite>" + cases + "</testsuite>");
  const std::string command = "cd '" + folder.path().string() +
                              "' && python3 '" MEDUSA_SOURCE_DIR
                              "/tools/test_summary.py' results.xml >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), file_text(folder / "out.txt"), file_text(folder / "err.txt")};
}

std::string skipped(const std::string& name, const std::string& output) {
  return "<testcase name=\"" + name +
         "\" status=\"notrun\"><skipped message=\"SKIP_REGULAR_EXPRESSION_MATCHED\"/>"
         "<system-out>" +
         output + "</system-out></testcase>";
}

constexpr const char* kPassed =
    R"(<testcase name="a" status="run"><system-out>[ OK ]</system-out></testcase>)";

TEST(TestSummary, CountsTestsAndTheReasonsOfThoseThatSkipped) {
  const ProcessResult ran = summed_up(
      std::string(kPassed) + kPassed +
      skipped("b", "[ RUN ] b\na/b.cpp:7: Skipped\nno AMX\n\n[ SKIPPED ] b\n") +
      skipped("c", "c.cpp:7: Skipped\nno GPU\n") + skipped("d", "d.cpp:9: Skipped\nno GPU\n"));
  EXPECT_EQ(ran.out, "2 passed, 3 skipped: no GPU (2), no AMX (1)\n") << ran.err;
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(summed_up(kPassed).out, "1 passed, 0 skipped\n");
}

TEST(TestSummary, WhatFailedOrCouldNotBeStartedIsAFailure) {
  const ProcessResult ran = summed_up(
      std::string(kPassed) +
      R"(<testcase name="b" status="fail"><failure message=""/><system-out/></testcase>)"
      R"(<testcase name="c" status="notrun"><skipped message="Unable to find executable: c"/></testcase>)" +
      skipped("d", "d.cpp:9: Skipped\nno GPU\n"));
  EXPECT_EQ(ran.out, "1 passed, 2 failed, 1 skipped: no GPU (1)\n") << ran.err;
  EXPECT_EQ(ran.status, 1);
}

// gtest calls every test of a suite skipped whose SetUpTestSuite() failed, and ctest believes it.
TEST(TestSummary, ASkipWithoutAReasonIsAFailure) {
  const ProcessResult ran = summed_up(std::string(kPassed) + skipped("b", "b.cpp:7: Skipped\n\n") +
                                      skipped("c", "c.cpp:7: Skipped\n\n[  SKIPPED ] c (0 ms)\n"));
  EXPECT_EQ(ran.out, "1 passed, 2 failed, 0 skipped\n");
  EXPECT_NE(ran.err.find("b: skipped without a reason"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.status, 1);
}

}  // namespace
}  // namespace medusa::cli
