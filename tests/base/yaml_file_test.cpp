#include "base/formats/yaml_file.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;

std::string load_error(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return error_text([&] { YamlFile::from_text(yaml, "run.yaml", overrides); });
}

TEST(YamlFile, ReadsAFileAndRemembersItsLines) {
  const fixtures::TempFolder folder;
  write_file(folder / "a.yaml", "# comment\ntrain:\n  epochs: 2\n");
  const YamlFile file(folder / "a.yaml");
  EXPECT_EQ(file.place("train.epochs", file.root()["train"]["epochs"]),
            (folder / "a.yaml").string() + ":3");
}

TEST(YamlFile, AMissingFileIsAnError) {
  EXPECT_EQ(error_text([] { YamlFile("none/a.yaml"); }),
            "none/a.yaml: no such file; check the path");
}

TEST(YamlFile, TextThatIsNotYamlIsAnErrorWithItsLine) {
  EXPECT_EQ(load_error("a: 1\nb: [1, 2\n"),
            "run.yaml:3: not valid YAML (end of sequence flow not found); mend the line");
}

TEST(YamlFile, ASecondDocumentIsAnErrorWithItsLine) {
  const std::string advice =
      ": a second document begins behind '---' or '...', expected one; remove it or give it a file "
      "of its own";
  EXPECT_EQ(load_error("---\na: 1\n---\nb: 2\n"), "run.yaml:4" + advice);
  EXPECT_EQ(load_error("a: 1\n...\nb: 2\n"), "run.yaml:3" + advice);
  EXPECT_EQ(load_error("---\n---\na: 1\n"), "run.yaml:3" + advice);
  EXPECT_EQ(load_error("", {"a=1\n---\n2"}), "--set a=1\n---\n2:3" + advice);
  EXPECT_EQ(load_error("# one\n---\na: 1\n...\n"), "(no error)");
  EXPECT_EQ(load_error("a: 1\n---\n"), "(no error)");
  std::string empty_documents;  // the library's list of them would take much memory
  for (int i = 0; i < 500'000; ++i) empty_documents += "---\n";
  EXPECT_EQ(load_error(empty_documents), "(no error)");
}

TEST(YamlFile, ATagIsAnErrorWithItsLine) {
  const auto refusal = [](const std::string& tag) {
    return ": a value with the tag '" + tag + "', expected none; remove it";
  };
  EXPECT_EQ(load_error("a: 1\nb: !!foo {c: 2}\n"), "run.yaml:2" + refusal("tag:yaml.org,2002:foo"));
  EXPECT_EQ(load_error("a:\n- !x [1]\n"), "run.yaml:2" + refusal("!x"));
  EXPECT_EQ(load_error("a: !!foo\n"), "run.yaml:1" + refusal("tag:yaml.org,2002:foo"));
  EXPECT_EQ(load_error("a: !!foo ~\n"), "run.yaml:1" + refusal("tag:yaml.org,2002:foo"));
  EXPECT_EQ(load_error("", {"a=!!int 5"}), "--set a=!!int 5:1" + refusal("tag:yaml.org,2002:int"));
  EXPECT_EQ(load_error("a: '!x'\nb: \"1\"\nc: ! d\n"), "(no error)");
}

TEST(YamlFile, AnAliasInsideItsOwnValueIsAnErrorWithItsLine) {
  EXPECT_EQ(load_error("a: &x\n  b: *x\n"),
            "run.yaml:2: an alias inside the value that it stands for, expected a value that ends; "
            "remove it");
  EXPECT_EQ(load_error("a: &x {b: &y [1]}\nc: [*x, *y]\n"), "(no error)");
}

TEST(YamlFile, TextThatIsNotUtf8IsAnError) {
  const std::string refusal =
      "run.yaml: not text in UTF-8, expected YAML in it; save the file in this encoding";
  EXPECT_EQ(load_error("\xff\xfe"), refusal);
  EXPECT_EQ(load_error(std::string("\xff\xfe"
                                   "a\0:\0 \0"
                                   "1\0",
                                   10)),
            refusal);
  EXPECT_EQ(load_error("\xEF\xBB\xBF"
                       "a: 1\n"),
            "(no error)");
}

TEST(YamlFile, OverridesMakeTheSectionsTheyNeed) {
  const YamlFile file = YamlFile::from_text("a: 1\n", "run.yaml", {"b.c.d=[1, 2]", "a=x=y"});
  EXPECT_EQ(file.root()["b"]["c"]["d"].size(), 2u);
  EXPECT_EQ(file.root()["a"].Scalar(), "x=y");
  EXPECT_EQ(file.place("b.c.d", file.root()["b"]["c"]["d"]), "--set b.c.d=[1, 2]");
}

TEST(YamlFile, RejectsOverridesThatCannotBeApplied) {
  EXPECT_EQ(load_error("", {"epochs"}),
            "--set epochs: has no key before a '=', expected section.key=value; write it as in "
            "--set train.epochs=2");
  EXPECT_EQ(load_error("", {"=2"}),
            "--set =2: has no key before a '=', expected section.key=value; write it as in --set "
            "train.epochs=2");
  EXPECT_EQ(load_error("train: 3\n", {"train.epochs=2"}),
            "--set train.epochs: 'train' is a value, expected a section before a dot, as in "
            "train.epochs=2; correct the key (--help lists them)");
  EXPECT_EQ(load_error("- 3\n", {"train.epochs=2"}),
            "run.yaml:1: expected a mapping of keys to values; correct the file");
  EXPECT_EQ(load_error("", {"a=[1"}),
            "--set a=[1:1: not valid YAML (end of sequence flow not found); mend the line");
}

}  // namespace
}  // namespace medusa
