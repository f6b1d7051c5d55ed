#include "tools/report/report.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/tools/example_run.h"
#include "tools/report/html.h"
#include "tools/report/tree_picture.h"

namespace medusa {
namespace {

/// The first place where opening and closing tags do not match; empty if all do. Enough of a parser
/// for what we write: '<' and '>' occur in tags only, the style sheet has none.
std::string tag_problem(std::string_view html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string_view::npos) return "unclosed tag";
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string_view::npos) return "'<' inside <" + std::string(tag);
    const bool closing = tag.starts_with('/');
    const std::string name(tag.substr(closing, tag.find_first_of(" />", closing) - closing));
    if (tag.starts_with('!') || name == "meta" || tag.ends_with('/')) continue;
    if (!closing) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return "unexpected </" + name + ">";
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Report, TagsAreBalancedForFullAndEmptyRuns) {
  for (const int32_t nodes : {1, 2, 16, 32, 64})
    EXPECT_EQ(tag_problem(report_page(fixtures::example_run(nodes))), "") << nodes;
  EXPECT_EQ(tag_problem(report_page(ReportInputs{})), "");
}

TEST(Report, ShowsTheMeasuredNumbersWithTheirUnits) {
  const std::string page = report_page(fixtures::example_run());
  for (const char* text :
       {"1.93<small>×", "118.4<small>tokens/s", "2.14<small>tokens/step", "12 / 12",
        "plain: 61.3 tokens/s", "verify 16.63", "18.08 ms", "42.1\u00A0%", "N = 32", "head 3",
        "18\u202F250 validation positions", "sha256:4f0c", "model.gguf"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST(Report, SaysWhereWhenAndByWhatItWasMeasured) {
  const std::string page = report_page(fixtures::example_run());
  EXPECT_NE(page.find("Example CPU, 2 threads, bfloat16; 2026-11-25; medusa 0.1.0 (012fc3e1f2a0)"),
            std::string::npos);
}

TEST(Report, ShowsOneQuestionAnsweredByEachStepByStep) {
  const std::string page = report_page(fixtures::example_run());
  for (const char* text :
       {"Why is &lt;the&gt; sky blue?", "plain: 3 tokens in 3 steps, 1.25 s",
        "medusa, greedy: 3 tokens in 2 steps, 0.75 s",
        "<span class=\"run r2\" title=\"2 tokens\">Light scatters</span><span class=\"run r1\" "
        "title=\"1 token\">.</span>"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  ReportInputs older = fixtures::example_run();
  older.comparison.value->answers.clear();
  EXPECT_EQ(report_page(older).find("id=\"example\""), std::string::npos);
}

TEST(Report, LinksTheOtherPagesOfItsRun) {
  const fixtures::TempFolder folder;
  write_file(folder.path() / "compare.json", fixtures::example_comparison());
  const auto page = [&] {
    write_run_report(folder.path(), folder.path() / "report.html");
    return read_file(folder.path() / "report.html");
  };
  EXPECT_EQ(page().find("<nav>"), std::string::npos);
  write_file(folder.path() / "bench.html", "");
  EXPECT_NE(page().find("<nav><a href=\"bench.html\">"), std::string::npos);
  write_file(folder.path() / "profile.html", "");
  refresh_run_report(folder.path());
  EXPECT_NE(read_file(folder.path() / "report.html").find("<a href=\"profile.html\">"),
            std::string::npos);
  write_file(folder.path() / "report.html", "mine");
  refresh_run_report(folder.path());
  EXPECT_EQ(read_file(folder.path() / "report.html"), "mine");
}

TEST(Report, AComparisonOfOtherHeadsIsNotTheRunsResult) {
  ReportInputs inputs = fixtures::example_run();
  const std::string tile = "speed-up over plain decoding", remark = "of other heads than the run's";
  inputs.comparison.value->heads = inputs.heads.value->fingerprint;
  std::string page = report_page(inputs);
  EXPECT_NE(page.find(tile), std::string::npos);
  EXPECT_EQ(page.find(escape_html(remark)), std::string::npos);
  inputs.comparison.value->heads = "sha256:0000";
  page = report_page(inputs);
  EXPECT_EQ(page.find(tile), std::string::npos);
  EXPECT_NE(page.find(escape_html(remark)), std::string::npos);
  inputs.comparison.value->heads.clear();  // as earlier programs left it
  inputs.comparison.value->backbone = "sha256:0000";
  EXPECT_EQ(report_page(inputs).find(tile), std::string::npos);
}

TEST(Report, EscapesEverythingThatCameFromAFile) {
  ReportInputs inputs = fixtures::example_run();
  inputs.comparison.value->machine = "<script>alert('&')</script>";
  inputs.tree.value->source = "a \"quoted\" <b>";
  const std::string page = report_page(inputs);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"), std::string::npos);
  EXPECT_NE(page.find("a &quot;quoted&quot; &lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("demo &lt;smollm2 &amp; friends&gt;"), std::string::npos);
}

TEST(Report, EscapeReplacesBytesThatAreNoText) {
  EXPECT_EQ(escape_html("a\x80z"), "a\uFFFDz");
  EXPECT_EQ(escape_html("\xC3"), "\uFFFD");
  EXPECT_EQ(escape_html("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(escape_html(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(escape_html("\x1b\x7f\xC2\x9B"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(escape_html("exe.\u202Efdp"), "exe.\uFFFDfdp");  // would turn the line
  EXPECT_EQ(escape_html("größer ≥ 😀"), "größer ≥ 😀");
}

TEST(Report, LoadsNothingFromElsewhere) {
  const std::string page = report_page(fixtures::example_run());
  for (const char* text : {"http:", "https:", "//", "url(", "@import", "src=", "<script", "<link"})
    EXPECT_EQ(page.find(text), std::string::npos) << text;
}

TEST(Report, SaysWhatIsMissingAndShowsTheRest) {
  const fixtures::TempFolder run;
  make_folder(run / "train");
  write_file(run / "train/metrics.jsonl", fixtures::example_metrics());
  write_file(run / "compare.json", "{\"methods\": [{}]}");
  write_choice_tree(run / "tree.yaml", *fixtures::example_run(16).tree.value, "");
  write_run_report(run.path(), run / "report.html");
  const std::string page = read_file(run / "report.html");
  EXPECT_EQ(tag_problem(page), "");
  EXPECT_NE(page.find("This run has no dataset yet; medusa distill makes it."), std::string::npos);
  EXPECT_NE(page.find("This run has no heads yet; medusa train makes it."), std::string::npos);
  EXPECT_NE(page.find("Left out: "), std::string::npos);  // the damaged comparison
  EXPECT_NE(page.find("Accuracy of the first draft"), std::string::npos);
  EXPECT_NE(page.find("Choice tree of 16 nodes, "), std::string::npos);
}

TEST(Report, ShowsTheJointStageWithWhatTheGuardFound) {
  const fixtures::TempFolder run;
  make_folder(run / "joint/train");
  write_file(run / "joint/train/metrics.jsonl", fixtures::example_joint_metrics());
  write_run_report(run.path(), run / "report.html");
  const std::string page = read_file(run / "report.html");
  EXPECT_EQ(tag_problem(page), "");
  for (const char* text :
       {"Backbone and heads together", "The backbone&#39;s own loss", "Distance from what it was",
        "Perplexity of the watched answers", "as it was", "Greedy answers that are the same",
        "After 60 steps: KL 0.0300 nats, perplexity 3.100 (was 3.000), 75.0\u00A0% of the greedy "
        "answers the same."})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(report_page(fixtures::example_run()).find("Backbone and heads together"),
            std::string::npos);
}

TEST(Report, LoadsItselfAgainWhileTrainingGoesOn) {
  ReportInputs inputs = fixtures::example_run();
  EXPECT_EQ(report_page(inputs).find("http-equiv"), std::string::npos);
  inputs.reload_s = 5;
  const std::string page = report_page(inputs);
  EXPECT_NE(page.find("<meta http-equiv=\"refresh\" content=\"5\">"), std::string::npos);
  EXPECT_EQ(tag_problem(page), "");
}

TEST(Report, RefusesAFolderThatIsNotThere) {
  const fixtures::TempFolder folder;
  const auto path = folder / "nothing";
  EXPECT_EQ(fixtures::error_text([&] { write_run_report(path, folder / "report.html"); }),
            path.string() + ": no such folder, expected the folder of a run; check the path");
}

TEST(Report, IsTheSameForTheSameRun) {
  EXPECT_EQ(report_page(fixtures::example_run()), report_page(fixtures::example_run()));
}

TEST(TreePicture, DrawsEveryNodeWithItsRank) {
  for (const bool upright : {true, false}) {
    const std::string svg = draw_tree(*fixtures::example_run(64).tree.value, 1020, upright);
    EXPECT_EQ(count(svg, "class=\"node\""), 63u);
    EXPECT_EQ(count(svg, "class=\"rank"), 63u);
    EXPECT_EQ(count(svg, "class=\"edge\""), 63u);
    EXPECT_NE(svg.find("[0, 0]: right at "), std::string::npos);
  }
}

TEST(TreePicture, TakesATreeThatWasNotCalibrated) {
  const ChoiceTree tree = make_choice_tree({{0}, {1}, {0, 0}}, 10, "test");
  EXPECT_TRUE(path_shares(tree).empty());
  EXPECT_EQ(count(draw_tree(tree, 330, false), "class=\"node\""), 3u);
}

}  // namespace
}  // namespace medusa
