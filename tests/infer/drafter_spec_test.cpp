#include "infer/drafter_spec.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"

namespace medusa {
namespace {

TEST(DrafterSpec, EveryNameHasOneRow) {
  std::set<DrafterKind> kinds;
  for (const DrafterSpec* each : all_drafters())
    EXPECT_TRUE(kinds.insert(each->kind).second) << each->summary;
  EXPECT_EQ(kinds.size(), EnumNames<DrafterKind>::values.size());
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values)
    EXPECT_EQ(spec_of(kind).kind, kind) << name;
}

TEST(DrafterSpec, ThePageSaysWhatTheTableSays) {
  const std::string page = read_file(MEDUSA_SOURCE_DIR "/infer/drafters/README.md");
  for (const DrafterSpec* each : all_drafters()) {
    const std::string row = "| `" + std::string(enum_name(each->kind)) + "` | " +
                            level_name(each->level) + " | " + each->summary + " |";
    EXPECT_NE(page.find("\n" + row), std::string::npos) << row;
  }
}

TEST(DrafterSpec, WhatMayBeMergedIsNamed) {
  EXPECT_EQ(mergeable_names(), "medusa | blockwise | prompt_lookup | retrieval | shared | eagle3");
}

}  // namespace
}  // namespace medusa
