// Files of torch.save, damaged at random: each is read or refused, quickly and in little memory.
// MEDUSA_MUTATIONS sets how many are tried (default 2,000 of each kind).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/formats/torch_file.h"
#include "base/formats/zip_file.h"
#include "base/random.h"
#include "tests/base/allocation_peak.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

constexpr size_t kSpareBytes = 64 << 20;
constexpr double kMostSeconds = 1;

int64_t num_mutations() {
  const char* text = std::getenv("MEDUSA_MUTATIONS");
  return text != nullptr ? std::atoll(text) : 2'000;
}

/// A sequence of numbers that the seed decides.
class Draws {
 public:
  explicit Draws(int64_t seed) : random_(static_cast<uint64_t>(seed)) {}
  size_t below(size_t bound) {
    const double unit = random_.uniform(RandomUse::Init, 0, next_++);
    return static_cast<size_t>(unit * static_cast<double>(bound));
  }

 private:
  Random random_;
  uint64_t next_ = 0;
};

/// A few bytes altered, removed, repeated or moved; now and then the end cut off.
std::string mutated(std::string bytes, Draws& draw) {
  // Bytes that mean something in a pickle or an archive break more than others do.
  static const std::string kTelling = "\x80\x02})(]tuesaRQXKMJ\x8a\xff\x7f\x00qrhj.cbPK\x05\x06";
  for (size_t changes = 1 + draw.below(8); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = draw.below(bytes.size());
    const size_t length = 1 + draw.below(std::min<size_t>(16, bytes.size() - at));
    switch (draw.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(draw.below(256));
        break;
      case 1:
        bytes[at] = kTelling[draw.below(kTelling.size())];
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(draw.below(bytes.size()), length));
        break;
      case 4:
        for (size_t i = 0; i < length; ++i) bytes[at + i] = '\xff';
        break;
      default:
        if (draw.below(8) == 0) bytes.resize(at);
    }
  }
  return bytes;
}

class MutatedTorchFile : public testing::Test {
 protected:
  /// Writes the file with write(), reads it, and holds the reader to its limits.
  template <typename Write>
  void try_one(int64_t seed, const Write& write) {
    SCOPED_TRACE(seed);
    write();
    const size_t limit = 2 * std::filesystem::file_size(path_) + kSpareBytes;
    const size_t before = fixtures::allocated_bytes();
    fixtures::reset_peak();
    const auto start = std::chrono::steady_clock::now();
    try {
      const TorchFile file(path_);
      for (const SafetensorsEntry& entry : file.entries())  // ASan looks at every byte handed out
        for (const uint8_t byte : entry.bytes) sum_ += byte;
      ++read_;
    } catch (const UserError&) {
      ++refused_;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), kMostSeconds);
    EXPECT_LT(fixtures::peak_bytes() - before, limit);
  }

  const std::string original_ = read_file(MEDUSA_SOURCE_DIR "/tests/golden/torch_save.pt");
  fixtures::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "a.pt";
  int64_t read_ = 0, refused_ = 0;
  uint64_t sum_ = 0;
};

/// Written without write_file: thousands of flushes to the disk would take minutes.
void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::FILE* out = std::fopen(path.c_str(), "wb");
  ASSERT_NE(out, nullptr);
  std::fwrite(bytes.data(), 1, bytes.size(), out);
  std::fclose(out);
}

TEST_F(MutatedTorchFile, TheArchiveIsReadOrRefused) {
  for (int64_t seed = 0; seed < num_mutations(); ++seed) {
    Draws draw(seed);
    std::string bytes = mutated(original_, draw);
    if (bytes.empty()) continue;
    try_one(seed, [&] { overwrite(path_, bytes); });
  }
  EXPECT_GT(refused_, 100);
  EXPECT_GT(read_, 0);
}

/// The pickle is what the checksums would otherwise keep the mutations out of.
TEST_F(MutatedTorchFile, ThePickleIsReadOrRefused) {
  overwrite(path_, original_);
  const ZipFile zip(path_);
  const auto pickle = zip.read("torch_save/data.pkl");
  const std::string program(pickle.begin(), pickle.end());
  std::vector<std::pair<std::string, std::string>> storages;
  for (const auto& [name, member] : zip.members())
    if (name.find("/data/") != std::string::npos)
      storages.emplace_back(name, std::string(member.bytes.begin(), member.bytes.end()));
  path_ = folder_ / "b.pt";
  for (int64_t seed = 0; seed < num_mutations(); ++seed) {
    Draws draw(seed);
    const std::string bytes = mutated(program, draw);
    std::vector<ZipMember> members{{"torch_save/data.pkl", {bytes}}};
    for (const auto& [name, storage] : storages) members.push_back({name, {storage}});
    try_one(seed, [&] { overwrite(path_, zip_bytes(members)); });
  }
  EXPECT_GT(refused_, 100);
  EXPECT_GT(read_, 20);
}

TEST_F(MutatedTorchFile, PicklesThatOnlyWantMemoryAreRefused) {
  for (const char* unit : {"}", "]", ")", "(", "K\x01", "]]a", "}q\x01", "N\x85"}) {
    std::string program = "\x80\x02";
    while (program.size() < 30'000'000) program += unit;
    try_one(0, [&] {
      overwrite(path_, zip_bytes(std::vector<ZipMember>{{"x/data.pkl", {program}}}));
    });
  }
  EXPECT_EQ(refused_, 8);
}

}  // namespace
}  // namespace medusa
