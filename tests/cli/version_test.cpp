#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

TEST(VersionOption, SaysWhichBuildThisIs) {
  const CliFixture place;
  const ProcessResult ran = place.run("--version");
  EXPECT_EQ(ran.status, 0) << ran.err;
  const ProcessResult as_json = place.run("--version --json");
  EXPECT_EQ(as_json.status, 0) << as_json.err;
  const auto found = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(found["version"], MEDUSA_VERSION);
  EXPECT_EQ(found["libtorch"], "2.11.0");
  const std::string commit = found["commit"], isa = found["isa"];
  EXPECT_TRUE(commit == "unknown" || commit.size() >= 12) << commit;
  const std::string git = "git -C '" MEDUSA_SOURCE_DIR "' rev-parse --short=12 HEAD >'" +
                          (place / "head").string() + "' 2>/dev/null";
  if (std::system(git.c_str()) == 0) {
    EXPECT_EQ(commit + "\n", file_text(place / "head")) << "build again";
  }
  EXPECT_FALSE(isa.empty());
  EXPECT_TRUE(found["cuda"].is_boolean());
  EXPECT_EQ(ran.out.find("medusa " MEDUSA_VERSION " (" + commit + ")\nLibTorch 2.11.0\n"), 0U)
      << ran.out;
  EXPECT_NE(ran.out.find(isa), std::string::npos) << ran.out;
}

TEST(VersionOption, TakesNothingButJson) {
  const ProcessResult ran = CliFixture().run("--version --quiet");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("--version: found '--quiet', expected --json or nothing"),
            std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
