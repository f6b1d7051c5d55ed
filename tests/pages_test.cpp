// Holds the pages to what they promise: links that lead somewhere, names that exist, and sizes that
// a newcomer can read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::filesystem::path kRoot = MEDUSA_SOURCE_DIR;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The files of the checkout with one of these extensions; what builds and runs leave is passed
/// over.
std::vector<std::filesystem::path> files_with(const std::set<std::string>& extensions) {
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::recursive_directory_iterator(kRoot);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory()) {
      if (name.starts_with('.') || name == "build" || name == "runs" || name == "__pycache__")
        entry.disable_recursion_pending();
    } else if (extensions.contains(entry->path().extension().string())) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The page without code blocks and code spans, in which nothing is a link or a heading.
std::string without_code(const std::string& page) {
  std::istringstream lines(page);
  std::string out;
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    const size_t start = line.find_first_not_of(' ');
    const bool fence = start != std::string::npos && line.compare(start, 3, "```") == 0;
    if (fence) in_block = !in_block;
    if (!fence && !in_block) out += line + "\n";
  }
  return std::regex_replace(out, std::regex("`[^`]*`"), "``");
}

/// The anchors that the headings of a page get: small letters, digits, '_' and '-', spaces as '-';
/// a second heading of the same words gets "-1".
std::set<std::string> anchors_of(const std::string& page) {
  std::istringstream lines(page);
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_block = !in_block;
    const size_t level = line.find_first_not_of('#');
    if (in_block || level == 0 || level == std::string::npos || line[level] != ' ') continue;
    std::string anchor;
    for (const char c : line.substr(level + 1)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80 && (std::isalnum(byte) || c == '-' || c == '_'))
        anchor += static_cast<char>(std::tolower(byte));
      else if (c == ' ')
        anchor += '-';
    }
    const int before = seen[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

int64_t count_words(const std::string& text) {
  std::istringstream in(text);
  return std::distance(std::istream_iterator<std::string>(in), {});
}

}  // namespace

TEST(Pages, EveryLinkLeadsToAFileAndAHeadingOfIt) {
  const std::regex link(R"re(\]\(([^)\s]+)\))re");
  int64_t checked = 0;
  for (const auto& page : files_with({".md"})) {
    const std::string text = without_code(text_of(page));
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const std::string to = (*match)[1];
      if (to.find("://") != std::string::npos) continue;
      const size_t hash = to.find('#');
      const std::string file = to.substr(0, hash);
      const auto target = file.empty() ? page : page.parent_path() / file;
      ++checked;
      if (!std::filesystem::exists(target)) {
        ADD_FAILURE() << page.string() << ": no file " << to;
      } else if (hash != std::string::npos) {
        EXPECT_TRUE(anchors_of(text_of(target)).contains(to.substr(hash + 1)))
            << page.string() << ": no heading " << to;
      }
    }
  }
  EXPECT_GT(checked, 100);
}

// Files that a page names by the way from its own folder, as code.
TEST(Pages, EveryFileBesideAPageIsThere) {
  const std::regex beside(R"re(`(\.\./[A-Za-z0-9_./-]+)`)re");
  int64_t checked = 0;
  for (const auto& page : files_with({".md"})) {
    const std::string text = text_of(page);
    for (std::sregex_iterator match(text.begin(), text.end(), beside), end; match != end; ++match) {
      EXPECT_TRUE(std::filesystem::exists(page.parent_path() / match->str(1)))
          << page.string() << ": no file " << match->str(1);
      ++checked;
    }
  }
  EXPECT_GT(checked, 10);
}

// A comment that sends its reader to a page which was moved is worse than none.
TEST(Pages, EveryPageThatCodeNamesIsThere) {
  const std::regex page(R"re([A-Za-z0-9_./-]*[A-Za-z0-9_-]\.md\b)re");
  const std::set<std::string> code = {".h",    ".cpp",   ".cu", ".cuh", ".yaml",
                                      ".json", ".cmake", ".sh", ".py",  ".txt"};
  int64_t checked = 0;
  for (const auto& file : files_with(code)) {
    if (file.filename() == "pages_test.cpp") continue;
    const std::string text = text_of(file);
    for (std::sregex_iterator match(text.begin(), text.end(), page), end; match != end; ++match) {
      std::string named = match->str();
      named.erase(0, named.find_first_not_of('/'));  // MEDUSA_SOURCE_DIR "/backbone/README.md"
      ++checked;
      EXPECT_TRUE(std::filesystem::exists(kRoot / named) ||
                  std::filesystem::exists(file.parent_path() / named))
          << file.string() << ": no page " << named;
    }
  }
  EXPECT_GT(checked, 10);
}

TEST(Pages, WhatANewcomerReadsFirstIsShort) {
  const std::string readme = text_of(kRoot / "README.md");
  EXPECT_LE(count_lines(readme), 120);
  EXPECT_LE(count_words(readme), 900);
  EXPECT_LE(count_lines(text_of(kRoot / "ARCHITECTURE.md")), 200);
}

// `file.cpp: function, Class::function` in ARCHITECTURE.md: the file is there and has them.
TEST(Pages, EveryFunctionThatArchitectureNamesIsInItsFile) {
  const std::string page = text_of(kRoot / "ARCHITECTURE.md");
  const std::regex place(R"re(`([a-z0-9_/]+\.(?:cpp|h)): ([A-Za-z0-9_:, ]+)`)re");
  int64_t checked = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), place), end; match != end; ++match) {
    const std::string file = (*match)[1];
    ASSERT_TRUE(std::filesystem::exists(kRoot / file)) << file;
    const std::string text = text_of(kRoot / file);
    std::istringstream names((*match)[2]);
    for (std::string name; std::getline(names, name, ',');) {
      name.erase(0, name.find_first_not_of(' '));
      ++checked;
      EXPECT_TRUE(std::regex_search(text, std::regex("\\b" + name + "\\b")))
          << file << " has no " << name;
    }
  }
  EXPECT_GE(checked, 24);
}

// The layers in the page are the layers that layers_test.cpp holds the code to.
TEST(Pages, ArchitectureShowsTheLayersThatAreTested) {
  const std::string page = text_of(kRoot / "ARCHITECTURE.md");
  for (const char* layer :
       {"tools      base data backbone heads infer train runtime ",
        "runtime    base data backbone heads infer train ", "train      base data backbone heads ",
        "infer      base backbone heads ", "heads      base backbone ", "backbone   base ",
        "data       base ", "base       (nothing of ours) "})
    EXPECT_NE(page.find("\n" + std::string(layer)), std::string::npos) << layer;
}
