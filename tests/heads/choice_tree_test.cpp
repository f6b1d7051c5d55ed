#include "heads/tree/choice_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

const std::filesystem::path kTrees = std::filesystem::path(MEDUSA_SOURCE_DIR) / "configs/trees";

/// Of each shipped tree: its buffers from the definition, and a digest of the paths that were
/// published. Made by tools/dev/make_tree_golden.py.
nlohmann::json golden_trees() {
  auto golden = nlohmann::json::parse(
      read_file(std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/tree_buffers.json"));
  EXPECT_EQ(golden.size(), 6U);
  return golden;
}

/// What the call complains about; empty if it does not.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

class ChoiceTreeFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "a.yaml";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string error_reading(const std::string& text) {
    std::ofstream(file_) << text;
    const std::string error = error_of([&] { read_choice_tree(file_); });
    const std::string path = file_.string();
    return error.rfind(path, 0) == 0 ? "a.yaml" + error.substr(path.size()) : error;
  }

  std::filesystem::path folder_, file_;
};

TEST(ChoiceTree, BuffersOfThePublishedTreesAreAsKnown) {
  const nlohmann::json golden = golden_trees();
  for (const auto& [name, buffers] : golden.items()) {
    SCOPED_TRACE(name);
    const TreeShape shape = read_choice_tree(kTrees / (name + ".yaml")).shape();
    EXPECT_EQ(nlohmann::json(shape.depths), buffers["depths"]);
    EXPECT_EQ(nlohmann::json(shape.parents), buffers["parents"]);
    EXPECT_EQ(nlohmann::json(shape.ranks), buffers["ranks"]);
    EXPECT_EQ(nlohmann::json(shape.ancestors), buffers["ancestors"]);
    EXPECT_EQ(nlohmann::json(shape.leaves), buffers["leaves"]);
  }
}

TEST(ChoiceTree, ShippedTreeFilesAreThePublishedTrees) {
  const nlohmann::json golden = golden_trees();
  for (const auto& [name, buffers] : golden.items()) {
    SCOPED_TRACE(name);
    std::vector<RankPath> paths = read_choice_tree(kTrees / (name + ".yaml")).paths;
    std::sort(paths.begin(), paths.end());
    std::string text;
    for (const RankPath& path : paths) {
      text += text.empty() ? "" : ";";
      for (size_t i = 0; i < path.size(); ++i)
        text += (i == 0 ? "" : ",") + std::to_string(path[i]);
    }
    EXPECT_EQ(fingerprint_text(text), "sha256:" + buffers["digest"].get<std::string>());
  }
}

TEST_F(ChoiceTreeFile, ImportsNamedListsAsTheyArePublished) {
  nlohmann::json published;
  for (const auto& entry : std::filesystem::directory_iterator(kTrees)) {
    const ChoiceTree shipped = read_choice_tree(entry.path());
    nlohmann::json paths = shipped.paths;
    std::reverse(paths.begin(), paths.end());  // the order of a list says nothing
    published[entry.path().stem().string()] = {{"source", shipped.source}, {"paths", paths}};
  }
  std::ofstream(file_) << published;
  for (const auto& [name, entry] : published.items()) {
    SCOPED_TRACE(name);
    const ChoiceTree shipped = read_choice_tree(kTrees / (name + ".yaml"));
    const ChoiceTree imported = import_choice_tree(file_, name);
    EXPECT_EQ(shipped.paths, imported.paths);
    EXPECT_EQ(shipped.source, imported.source);
    EXPECT_EQ(shipped.top_k, imported.top_k);
    EXPECT_TRUE(shipped.heads.empty());
  }
}

TEST(ChoiceTree, NodesAreOrderedByLengthThenRanks) {
  const ChoiceTree tree = make_choice_tree({{1}, {0, 1}, {0}, {0, 0}, {1, 0}}, 0, "test");
  EXPECT_EQ(tree.paths, (std::vector<RankPath>{{0}, {1}, {0, 0}, {0, 1}, {1, 0}}));
  EXPECT_EQ(tree.top_k, 2);
  EXPECT_EQ(tree.num_nodes(), 6);
  EXPECT_EQ(tree.depth(), 2);
}

TEST(ChoiceTree, TheRootAloneIsATree) {
  const ChoiceTree tree = make_choice_tree({}, 1, "test");
  EXPECT_EQ(tree.num_nodes(), 1);
  EXPECT_EQ(tree.depth(), 0);
  EXPECT_EQ(tree.shape().leaves, (std::vector<std::vector<int32_t>>{{0}}));
}

TEST_F(ChoiceTreeFile, WritingAndReadingGivesTheSameTree) {
  ChoiceTree tree = make_choice_tree({{0}, {1}, {0, 0}}, 10, "test");
  tree.heads = "sha256:4f0c";
  tree.source = "a \"quoted\" source: with a colon";
  tree.expected_tokens_per_step = Estimate{2.41, 2.375, 2.5};
  tree.temperatures = {1.25, 0.875, 3};
  tree.calibration = TreeCalibration{"2 cores",
                                     300,
                                     1000,
                                     40,
                                     {{0.5, 0.25}, {0.125, 0}},
                                     {{{0}, 500}, {{0, 0}, 100}},
                                     {{1, 1.0, 9.25}, {4, 1.75, 9.5}},
                                     {9.0, 9.25, 9.5},
                                     {0, 0.5, 0.75, 0.875},
                                     {{"none", {1, 1, 1}}, {"merge", {1.5, 1.25, 1.75}}}};
  tree.drafter = "merge";
  write_choice_tree(file_, tree, "Made by: a test\nsecond line");
  EXPECT_EQ(read_file(file_).rfind("# Made by: a test\n# second line\nformat: ", 0), 0U);
  const ChoiceTree read = read_choice_tree(file_);
  EXPECT_EQ(read.paths, tree.paths);
  EXPECT_EQ(read.heads, tree.heads);
  EXPECT_EQ(read.source, tree.source);
  EXPECT_EQ(read.temperatures, tree.temperatures);
  EXPECT_EQ(read.shape().temperatures, tree.temperatures);
  EXPECT_EQ(read.top_k, 10);
  ASSERT_TRUE(read.expected_tokens_per_step && read.calibration);
  EXPECT_DOUBLE_EQ(read.expected_tokens_per_step->low, 2.375);
  EXPECT_EQ(read.calibration->machine, "2 cores");
  EXPECT_EQ(read.calibration->head_accuracy, tree.calibration->head_accuracy);
  ASSERT_EQ(read.calibration->sizes.size(), 2U);
  EXPECT_DOUBLE_EQ(read.calibration->sizes[1].step_ms, 9.5);
  EXPECT_EQ(read.calibration->rows_ms, tree.calibration->rows_ms);
  EXPECT_EQ(read.calibration->drafting_ms, tree.calibration->drafting_ms);
  EXPECT_EQ(read.drafter, "merge");
  ASSERT_EQ(read.calibration->drafters.size(), 2U);
  EXPECT_EQ(read.calibration->drafters[1].drafter, "merge");
  EXPECT_EQ(read.calibration->drafters[1].speedup.value, 1.5);
  EXPECT_EQ(read.calibration->drafters[1].speedup.low, 1.25);
  EXPECT_EQ(read.calibration->drafters[1].speedup.high, 1.75);
  ASSERT_EQ(read.calibration->path_counts.size(), 2U);
  EXPECT_EQ(read.calibration->path_counts[1].path, (RankPath{0, 0}));
  EXPECT_EQ(read.calibration->path_counts[1].count, 100);
}

TEST_F(ChoiceTreeFile, KeepsASweepOverThresholds) {
  ChoiceTree tree = make_choice_tree({{0}}, 2, "test");
  tree.typical = TypicalSweep{0.75,
                              {2, 1.75, 2.25},
                              {{0.0625, 0.25, {1.5, 1.25, 1.75}, {1.5, 1.25, 1.75}, 0.125, 0.75},
                               {0.25, 0.5, {1.25, 1, 1.5}, {1.75, 1.5, 2}, 0.0625, 0.875}},
                              1};
  write_choice_tree(file_, tree, "");
  const auto read = read_choice_tree(file_).typical;
  ASSERT_TRUE(read);
  EXPECT_EQ(read->temperature, 0.75);
  EXPECT_EQ(read->chosen, 1U);
  EXPECT_EQ(read->plain_surprisal.high, 2.25);
  ASSERT_EQ(read->points.size(), 2U);
  EXPECT_EQ(read->points[0].epsilon, 0.0625);
  EXPECT_EQ(read->points[0].speedup.low, 1.25);
  EXPECT_EQ(read->points[1].delta, 0.5);
  EXPECT_EQ(read->points[1].surprisal.value, 1.75);
  EXPECT_EQ(read->points[1].kl, 0.0625);
  EXPECT_EQ(read->points[1].agreement, 0.875);
}

const std::string kHead = "format: medusa-choice-tree\nversion: 1\ntop_k: 2\nnodes:\n";

TEST_F(ChoiceTreeFile, RefusesAPathWithoutItsPrefix) {
  EXPECT_EQ(error_reading(kHead + "  - [0]\n  - [1, 0]\n"),
            "a.yaml:6: path [1, 0] is listed but its prefix [1] is not; add it or remove the path");
}

TEST_F(ChoiceTreeFile, RefusesARankBeyondTopK) {
  EXPECT_EQ(
      error_reading(kHead + "  - [0]\n  - [2]\n"),
      "a.yaml:6: path [2] has the rank 2, expected ranks below top_k, which is 2; raise top_k "
      "or remove the path");
}

TEST_F(ChoiceTreeFile, RefusesANegativeRank) {
  EXPECT_EQ(error_reading(kHead + "  - [-1]\n"),
            "a.yaml:5: path [-1] has the rank -1, expected ranks from 0; mend the path");
}

TEST_F(ChoiceTreeFile, RefusesARepeatedPath) {
  EXPECT_EQ(error_reading(kHead + "  - [0]\n  - [1]\n  - [0]\n"),
            "a.yaml:7: path [0] is listed twice, expected each path once; remove one of them");
}

TEST_F(ChoiceTreeFile, RefusesAnEmptyPath) {
  EXPECT_EQ(error_reading(kHead + "  - []\n"),
            "a.yaml:5: an empty path is listed, expected draft ranks like [0, 1]; remove it (the "
            "root is always there)");
}

TEST_F(ChoiceTreeFile, RefusesAnotherFormat) {
  EXPECT_EQ(error_reading("tokens: 3\n"),
            "a.yaml:1: this is not a choice tree, expected 'format: medusa-choice-tree'; pass a "
            "tree that 'medusa calibrate' wrote or one of configs/trees");
}

TEST_F(ChoiceTreeFile, RefusesAnotherVersion) {
  EXPECT_EQ(error_reading("format: medusa-choice-tree\nversion: 2\ntop_k: 1\nnodes: []\n"),
            "a.yaml:2: version 2 of the format, expected 1; calibrate again");
}

TEST_F(ChoiceTreeFile, RefusesAMissingTopK) {
  EXPECT_EQ(error_reading("format: medusa-choice-tree\nversion: 1\nnodes: []\n"),
            "a.yaml: 'top_k' is missing, expected the number of drafts kept per head; add it");
}

TEST_F(ChoiceTreeFile, RefusesAnUnknownKeyAndSuggests) {
  EXPECT_EQ(error_reading(kHead + "  - [0]\nhead: x\n"),
            "a.yaml:6: unknown key 'head' (did you mean 'heads'?); correct or remove it");
}

TEST_F(ChoiceTreeFile, AFileWithoutTemperaturesHasNone) {
  EXPECT_EQ(error_reading(kHead + "  - [0]\n"), "");
  EXPECT_TRUE(read_choice_tree(file_).temperatures.empty());
}

TEST_F(ChoiceTreeFile, RefusesATemperatureOfZero) {
  EXPECT_EQ(error_reading(kHead + "  - [0]\ntemperatures: [1.5, 0]\n"),
            "a.yaml:6: a temperature is 0, expected numbers from 0.01 on; calibrate again or "
            "remove the line");
  EXPECT_EQ(error_reading(kHead + "  - [0]\ntemperatures: [1e-300]\n"),
            "a.yaml:6: a temperature is 1e-300, expected numbers from 0.01 on; calibrate again or "
            "remove the line");
}

TEST_F(ChoiceTreeFile, RefusesCountsThatDoNotBelongToPaths) {
  EXPECT_EQ(
      error_reading(kHead + "  - [0]\ncalibration:\n  paths: [[0]]\n  counts: [1, 2]\n"),
      "calibration: lists that belong together have different lengths, expected one count per "
      "path and one tokens_per_step and step_ms per num_nodes; calibrate again");
}

TEST_F(ChoiceTreeFile, RefusesSweepsAndDraftersThatDoNotFit) {
  const std::string again = "expected one ";
  for (const char* section :
       {"calibration:\n  drafters: [none]\n  speedups: [1]\n  speedups_95: [[1]]\n",
        "calibration:\n  drafters: [none]\n  speedups: []\n  speedups_95: [[1, 1]]\n",
        "typical:\n  epsilon: [0.1]\n  delta: [0.3]\n",
        "typical:\n  epsilon: [0.1]\n  delta: [0.3]\n  kl: [0]\n  agreement: [1]\n  chosen: 1\n"
        "  speedup: [[1, 1, 1]]\n  surprisal: [[1, 1, 1]]\n  plain_surprisal: [1, 1, 1]\n"})
    EXPECT_NE(error_reading(kHead + "  - [0]\n" + section).find(again), std::string::npos)
        << section;
}

TEST(ChoiceTree, RefusesFewerHeadsThanItsDepth) {
  const ChoiceTree tree = make_choice_tree({{0}, {0, 0}, {0, 0, 0}}, 10, "test");
  EXPECT_EQ(error_of([&] { check_tree_fits(tree, 3, "sha256:aa", "t.yaml"); }), "");
  EXPECT_EQ(error_of([&] { check_tree_fits(tree, 2, "sha256:aa", "t.yaml"); }),
            "t.yaml: path [0, 0, 0] needs 3 heads, the heads have 2; remove the deeper paths or "
            "train more heads");
}

TEST(ChoiceTree, RefusesOtherHeads) {
  ChoiceTree tree = make_choice_tree({{0}}, 10, "test");
  tree.heads = "sha256:0123456789abcdef";
  EXPECT_EQ(error_of([&] { check_tree_fits(tree, 2, "sha256:0123456789abcdef", "t.yaml"); }), "");
  const std::string error =
      error_of([&] { check_tree_fits(tree, 2, "sha256:fedcba9876543210", "t.yaml"); });
  EXPECT_EQ(
      error,
      "t.yaml: measured on the heads sha256:0123456789ab…, these heads are "
      "sha256:fedcba987654…, expected the same; calibrate again, with --tree FILE where these "
      "heads are others than the run's own, or pass the other heads");
}

TEST(ChoiceTree, RefusesTemperaturesOfAnotherNumberOfHeads) {
  ChoiceTree tree = make_choice_tree({{0}}, 10, "test");
  tree.temperatures = {1.5, 2};
  EXPECT_EQ(error_of([&] { check_tree_fits(tree, 2, "sha256:aa", "t.yaml"); }), "");
  EXPECT_EQ(error_of([&] { check_tree_fits(tree, 3, "sha256:aa", "t.yaml"); }),
            "t.yaml: 'temperatures' has 2 numbers, expected one for each of 3 heads; calibrate "
            "again or remove the line");
}

TEST_F(ChoiceTreeFile, ImportsTupleListsOfMedusa) {
  std::ofstream(file_) << "[(0,), (0, 0), (1,), (0, 1,)]\n";
  EXPECT_EQ(import_choice_tree(file_, "").paths, (std::vector<RankPath>{{0}, {1}, {0, 0}, {0, 1}}));
}

TEST_F(ChoiceTreeFile, ImportNamesWhatIsWrong) {
  std::ofstream(file_) << R"({"a": [[0]], "b": 3})";
  const std::string advice =
      ", expected a list of paths like [[0], [0, 1]], or names with such lists; pass another file "
      "or name";
  EXPECT_EQ(import_choice_tree(file_, "a").paths, (std::vector<RankPath>{{0}}));
  EXPECT_EQ(error_of([&] { import_choice_tree(file_, "c"); }),
            file_.string() + ": no tree is named 'c'" + advice);
  EXPECT_EQ(error_of([&] { import_choice_tree(file_, "b"); }),
            file_.string() + ": 'b' is something else" + advice);
  std::ofstream(file_) << "nodes";
  EXPECT_EQ(error_of([&] { import_choice_tree(file_, ""); }),
            file_.string() + ": it is neither JSON nor a list of tuples" + advice);
}

TEST_F(ChoiceTreeFile, ImportConvertsNoRank) {
  for (const char* rank :
       {"1.99", "true", "4294967297", "1e300", "-1", "18446744073709551615", "\"0\"", "null"}) {
    std::ofstream(file_) << fmt::format("[[0], [0, {}]]", rank);
    const std::string error = error_of([&] { import_choice_tree(file_, ""); });
    EXPECT_EQ(error.find(file_.string() + ": path 1 of the list has the rank "), 0) << error;
    EXPECT_NE(error.find("expected whole numbers from 0 to 2147483646; mend the path"),
              std::string::npos)
        << error;
  }
  std::ofstream(file_) << "[[2147483646]]";
  EXPECT_EQ(import_choice_tree(file_, "").top_k, std::numeric_limits<int32_t>::max());
}

TEST(ChoiceTree, ItsShapeSaysHowOftenCalibrationFoundEachPathRight) {
  ChoiceTree tree = make_choice_tree({{0}, {1}, {0, 0}}, 2, "test");
  EXPECT_TRUE(tree.shape().accept_probs.empty()) << "not calibrated";
  tree.calibration.emplace();
  tree.calibration->num_positions = 1000;
  tree.calibration->path_counts = {{{0}, 400}, {{0, 0}, 200}, {{1}, 100}, {{1, 0}, 50}};
  EXPECT_EQ(tree.shape().accept_probs, (std::vector<double>{1, 0.4, 0.1, 0.2}));
  tree.calibration->path_counts.erase(tree.calibration->path_counts.begin());
  EXPECT_TRUE(tree.shape().accept_probs.empty()) << "a path was not counted";
}

}  // namespace
}  // namespace medusa
