#include "base/fingerprint.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

// The examples of FIPS 180-4 for SHA-256.
TEST(Fingerprint, IsTheSha256OfTheBytes) {
  EXPECT_EQ(fingerprint_text(""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(fingerprint_text("abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Fingerprint, PartsAddUpAndFilesCountAsTheirBytes) {
  const fixtures::TempFolder folder;
  write_file(folder / "a", "abc");
  EXPECT_EQ(fingerprint_file(folder / "a"), fingerprint_text("abc"));
  EXPECT_EQ(Fingerprint().add("a").add("bc").digest(), fingerprint_text("abc"));
}

TEST(Fingerprint, NumbersDoNotRunIntoEachOther) {
  EXPECT_NE(Fingerprint().add(int64_t{1}).add(int64_t{23}).digest(),
            Fingerprint().add(int64_t{12}).add(int64_t{3}).digest());
}

TEST(Fingerprint, TheShortFormIsForMessages) {
  EXPECT_EQ(short_fingerprint(fingerprint_text("abc")), "sha256:ba7816bf8f01…");
  EXPECT_EQ(short_fingerprint("sha256:b0"), "sha256:b0");
}

}  // namespace
}  // namespace medusa
