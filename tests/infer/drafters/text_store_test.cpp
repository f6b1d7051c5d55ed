#include "infer/drafters/text_store.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/fingerprint.h"
#include "tests/base/error_text.h"
#include "tests/infer/random_texts.h"
#include "tests/infer/text_store_file.h"

namespace medusa {
namespace {

using fixtures::TextStoreFile;
using Text = std::vector<TokenId>;

/// How often each token follows the run, by looking everywhere.
std::map<TokenId, int64_t> counted(const std::vector<Text>& texts, std::span<const TokenId> run) {
  std::map<TokenId, int64_t> out;
  for (const Text& text : texts)
    for (size_t i = 0; i + run.size() < text.size(); ++i)
      if (std::equal(run.begin(), run.end(), text.begin() + static_cast<std::ptrdiff_t>(i)))
        ++out[text[i + run.size()]];
  return out;
}

std::map<TokenId, int64_t> found(const TextStore& store, std::span<const TokenId> run) {
  std::map<TokenId, int64_t> out;
  for (const TextStore::Next& next : store.continuations(store.find(run)))
    out[next.token] = next.places.count();
  return out;
}

TEST(TextStore, FindsWhatLookingEverywhereFinds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Text> texts = fixtures::random_texts(seed, 6, 40, 4);
    const TextStoreFile file(texts);
    const Text query = fixtures::random_texts(seed + 100, 1, 200, 4).front();
    for (size_t length = 0; length <= 6; ++length)
      for (size_t i = 0; i + length <= query.size(); i += 3) {
        const auto run = std::span(query).subspan(i, length);
        EXPECT_EQ(found(file.store(), run), counted(texts, run)) << seed;
      }
  }
}

TEST(TextStore, NoRunReachesOverTheEndOfAText) {
  const TextStoreFile file({{1, 2}, {3, 4}});
  EXPECT_EQ(file.store().find(Text{2, 3}).count(), 0);
  EXPECT_TRUE(file.store().continuations(file.store().find(Text{1, 2})).empty());
  EXPECT_EQ(file.store().find(Text{1, 2}).count(), 1);
}

TEST(TextStore, TheEmptyRunIsEverywhere) {
  const TextStoreFile file({{1, 2, 1}, {2}});
  EXPECT_EQ(file.store().find(Text{}).count(), 4);
  EXPECT_EQ(found(file.store(), Text{}), (std::map<TokenId, int64_t>{{1, 2}, {2, 2}}));
  EXPECT_EQ(file.store().info().num_texts, 2);
  EXPECT_EQ(file.store().num_tokens(), 4);
}

TEST(TextStore, SaysWhatItWasMadeFrom) {
  const TextStoreFile file({{1, 2}});
  EXPECT_EQ(file.store().info().tokenizer, "sha256:aa");
  EXPECT_EQ(file.store().info().dataset, "sha256:bb");
  EXPECT_EQ(file.store().info().samples, "training");
}

class DamagedStore : public testing::Test {
 protected:
  DamagedStore()
      : file_(TextStoreFile::write(folder_ / "store", {{1, 2, 3, 1, 2}})),
        bytes_(read_file(file_)) {}

  std::string error() const {
    return fixtures::error_text([&] { TextStore store(file_); });
  }

  /// What it says once `from` is written in the place of `to`, of equal length.
  std::string error_with(const std::string& from, const std::string& to) {
    std::string changed = bytes_;
    changed.replace(changed.find(from), from.size(), to);
    write_file(file_, changed);
    return error();
  }

  fixtures::TempFolder folder_;
  std::filesystem::path file_;
  std::string bytes_;
};

TEST_F(DamagedStore, EveryChangedByteIsRefused) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    std::string changed = bytes_;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    write_file(file_, changed);
    EXPECT_NE(error(), "(no error)") << i;
  }
}

TEST_F(DamagedStore, EveryLengthButItsOwnIsRefused) {
  for (size_t length = 1; length < bytes_.size(); ++length) {
    write_file(file_, bytes_.substr(0, length));
    EXPECT_NE(error(), "(no error)") << length;
  }
  write_file(file_, bytes_ + "x");
  EXPECT_NE(error(), "(no error)");
}

TEST_F(DamagedStore, SaysWhatIsWrong) {
  const std::string name = file_.string();
  std::string changed = bytes_;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  write_file(file_, changed);
  const std::string altered = error();
  EXPECT_EQ(
      altered.rfind(name + ": altered since it was written: its contents have checksum sha256:", 0),
      0U)
      << altered;
  EXPECT_NE(altered.find("; build it again with medusa build-store"), std::string::npos);
  EXPECT_EQ(error_with("\"version\":\"1\"", "\"version\":\"2\""),
            name +
                ": version '2' of the format, expected 1; build it again with medusa "
                "build-store");
  EXPECT_EQ(error_with("medusa-text-store", "medusa-text-stork"),
            name +
                ": a safetensors file of another kind, expected the format medusa-text-store; "
                "give the file that medusa build-store wrote");
  EXPECT_EQ(error_with("\"suffixes\"", "\"prefixes\""),
            name +
                ": holds no list 'suffixes' of int32, expected one; build it again with medusa "
                "build-store");
  std::filesystem::remove(file_);
  EXPECT_EQ(error(), name + ": no such file; check the path");
}

/// Other arrays in the place of the file's, with a checksum that is right: nobody keeps that from a
/// stranger.
void forge(const std::filesystem::path& file, const std::vector<TokenId>& tokens,
           const std::vector<int32_t>& suffixes) {
  std::map<std::string, std::string> metadata;
  {
    const SafetensorsFile honest(file);
    for (const auto& [key, value] : honest.metadata()) metadata.emplace(key, value);
  }
  const auto bytes = [](const auto& values) {
    return std::span(reinterpret_cast<const uint8_t*>(values.data()),
                     values.size() * sizeof values[0]);
  };
  Fingerprint sum;
  for (const auto& [key, value] : metadata)
    if (key != "checksum") sum.add(key).add(0).add(value).add(0);
  metadata["checksum"] = sum.add(bytes(tokens)).add(bytes(suffixes)).digest();
  const std::vector<SafetensorsEntry> entries{
      {"tokens", "I32", {std::ssize(tokens)}, bytes(tokens)},
      {"suffixes", "I32", {std::ssize(suffixes)}, bytes(suffixes)}};
  std::filesystem::remove(file);
  write_safetensors(file, entries, metadata);
}

TEST_F(DamagedStore, AForgedOneThatWouldLeadOutsideIsRefused) {
  const auto error_of = [&](const std::vector<TokenId>& tokens,
                            const std::vector<int32_t>& suffixes) {
    write_file(file_, bytes_);
    forge(file_, tokens, suffixes);
    return error();
  };
  EXPECT_EQ(error_of({5, 6, -1}, {0, 1}), "(no error)");
  EXPECT_NE(error_of({5, 6, 7}, {0, 1, 2}).find("its last text has no end"), std::string::npos);
  EXPECT_NE(error_of({5, -2, -1}, {0, 1}).find("holds token -2"), std::string::npos);
  EXPECT_NE(error_of({5, 6, -1}, {0}).find("has 1 suffixes for 2 tokens"), std::string::npos);
  for (const int32_t at : {-1, 2, 3, 1 << 30})
    EXPECT_NE(error_of({5, 6, -1}, {0, at}).find("has a suffix at " + std::to_string(at)),
              std::string::npos);
}

TEST(TextStoreWriter, NoTextsAreTheUsersError) {
  const fixtures::TempFolder folder;
  EXPECT_EQ(fixtures::error_text([&] { TextStoreWriter().write(folder / "s", {}); }),
            (folder / "s").string() +
                ": there are no texts to look up, expected at least one; distil some, or keep "
                "fewer of them for validation");
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(TextStoreWriter, TheSameTextsGiveTheSameBytes) {
  const fixtures::TempFolder folder;
  const std::vector<Text> texts = fixtures::random_texts(5, 4, 30, 3);
  EXPECT_EQ(read_file(TextStoreFile::write(folder / "a", texts)),
            read_file(TextStoreFile::write(folder / "b", texts)));
}

}  // namespace
}  // namespace medusa
