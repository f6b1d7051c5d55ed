// The line that tools/test.sh ends with: tools/test_summary.py over what ctest and gtest write.
#include <map>

#include "program.h"

namespace medusa::cli {
namespace {

/// @param tests  elements of ctest's JUnit file.
/// @param cases  name of a file -> elements of what gtest writes about a suite's cases.
ProcessResult summed_up(const std::string& tests, const std::map<std::string, std::string>& cases) {
  const fixtures::TempFolder folder;
  write_text(folder / "tests.xml", "<testsuite>" + tests + "</testsuite>");
  std::filesystem::create_directory(folder / "results");
  for (const auto& [name, elements] : cases)
    write_text(folder / "results" / (name + ".xml"),
               "<testsuites><testsuite>" + elements + "</testsuite></testsuites>");
  const std::string command = "cd '" + folder.path().string() +
                              "' && python3 '" MEDUSA_SOURCE_DIR
                              "/tools/test_summary.py' tests.xml results >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), file_text(folder / "out.txt"), file_text(folder / "err.txt")};
}

/// A test as ctest tells of it.
std::string test(const std::string& name, const std::string& status = "run") {
  return "<testcase name=\"" + name + "\" status=\"" + status + "\"/>";
}

std::string skipped(const std::string& message) {
  return "<testcase name=\"s\"><skipped message=\"" + message + "\"/></testcase>";
}

constexpr const char* kPassed = R"(<testcase name="a" status="run" result="completed"/>)";
constexpr const char* kFailed = R"(<testcase name="b"><failure message="1"/></testcase>)";

TEST(TestSummary, CountsCasesAndTheReasonsOfThoseThatSkipped) {
  const std::string passed = std::string(kPassed) + kPassed;
  const ProcessResult ran =
      summed_up(test("cli.A") + test("base.P/B") + test("install"),
                {{"cli.A", passed + skipped("/a/b.cpp:7&#x0A;no AMX")},
                 {"base.P-B", skipped("../c.h:7&#x0A;no GPU") + skipped("d.cpp:9&#x0A;no GPU")}});
  EXPECT_EQ(ran.out, "3 passed, 3 skipped: no GPU (2), no AMX (1)\n") << ran.err;
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(summed_up(test("install"), {}).out, "1 passed, 0 skipped\n");
}

TEST(TestSummary, WhatFailedOrCouldNotBeStartedIsAFailure) {
  const ProcessResult ran =
      summed_up(test("a", "fail") + test("crashed", "fail") + test("c", "notrun"),
                {{"a", std::string(kPassed) + kFailed + kFailed}});
  EXPECT_EQ(ran.out, "1 passed, 4 failed, 0 skipped\n") << ran.err;
  EXPECT_EQ(ran.status, 1);
}

// A sanitizer's report after the last case ends a program whose cases all passed.
TEST(TestSummary, AProgramThatFailedBesideItsCasesIsAFailure) {
  const ProcessResult ran = summed_up(test("a", "fail"), {{"a", kPassed}});
  EXPECT_EQ(ran.out, "1 passed, 1 failed, 0 skipped\n");
  EXPECT_NE(ran.err.find("a: failed beside its cases"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.status, 1);
}

// gtest calls the cases of a suite skipped whose SetUpTestSuite() failed.
TEST(TestSummary, ASkipWithoutAReasonIsAFailure) {
  const ProcessResult ran =
      summed_up(test("x", "fail") + test("y"),
                {{"x", std::string(kPassed) + skipped("b.cpp:7&#x0A;")}, {"y", skipped("")}});
  EXPECT_EQ(ran.out, "1 passed, 2 failed, 0 skipped\n");
  EXPECT_NE(ran.err.find("x: s: skipped without a reason"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.status, 1);
}

}  // namespace
}  // namespace medusa::cli
