// One shard of a dataset: samples <-> the bytes of one HDF5 file. Schema: data/dataset/FORMAT.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/dataset/sample.h"

namespace medusa {

class Hdf5Reader;

/// What to do where a shard is missing, or is removed since it is damaged.
inline constexpr char kWriteAgain[] =
    "run the command that wrote this dataset again with the same options: `medusa distill` writes "
    "only what is missing; for `medusa dataset` remove the whole folder";

/// What a shard says of itself.
struct ShardHeader {
  DatasetInfo info;
  int64_t first = 0;  // index of its first prompt among all prompts
  int64_t count = 0;  // prompts it covers, those without a stored sample included
  int64_t total = 0;  // prompts of the run that made it
  bool last = false;  // the dataset ends with this shard
};

/// The samples of a shard, one after the other.
struct ShardSamples {
  std::vector<TokenId> tokens;
  std::vector<int64_t> offsets{0};    // [samples + 1] into tokens
  std::vector<int64_t> answer_start;  // [samples]
  std::vector<std::string> prompt_id;
  std::vector<uint16_t> hidden;            // bfloat16 bits [rows, H]: of the answers that have them
  std::vector<int64_t> hidden_offsets{0};  // [samples + 1] rows of hidden; used only with hidden

  void append(const Sample& sample);
  int64_t size() const { return static_cast<int64_t>(answer_start.size()); }
  int64_t num_answer_tokens() const;
};

/// The format's version that can hold such a dataset.
int64_t format_version(const DatasetInfo& info);

/// The bytes of the shard's file, checksum included. The same arguments give the same bytes.
std::string encode_shard(const ShardHeader& header, const ShardSamples& samples);

/// A shard opened for reading: checksum, schema and every offset were checked. Its hidden states
/// stay in the mapped file, which is opened once and is the only file that is.
///
/// Thread safety: const calls may run at the same time.
class ShardFile {
 public:
  /// @throws UserError  not a shard of this format version, cut short, altered, or inconsistent.
  explicit ShardFile(const std::filesystem::path& path);

  const ShardHeader& header() const { return header_; }
  const ShardSamples& samples() const { return samples_; }  // without hidden
  std::filesystem::path path() const { return file_.path(); }

  /// The whole file, as it was checked.
  std::string_view bytes() const;

  /// Rows of hidden states, of all its samples.
  int64_t hidden_rows() const { return hidden_rows_; }

  /// Rows [first, first + out.size() / H) of the hidden states, bfloat16 bits.
  void read_hidden(int64_t first, std::span<uint16_t> out) const;

  /// Gives the samples away; size and hidden states stay.
  ShardSamples take_samples() { return std::move(samples_); }

 private:
  void check_bytes() const;
  void read();
  StateFormat read_format(const std::string& text) const;
  void read_header(const Hdf5Reader& file);
  void check_range(const char* name, int64_t value, int64_t least, int64_t most) const;
  void check_header() const;
  void check_lengths(const Hdf5Reader& file) const;
  void read_hidden_place(const Hdf5Reader& file);
  void check_scales() const;
  void check_samples() const;
  [[noreturn]] void fail_inconsistent(const std::string& found) const;

  MappedFile file_;
  ShardHeader header_;
  ShardSamples samples_;
  int64_t hidden_offset_ = 0;  // bytes into the file
  int64_t hidden_rows_ = 0;
  std::vector<float> hidden_scales_;  // [rows] of int8 states
};

/// "shard-00007.h5".
std::string shard_name(int64_t shard);
/// Removes the files of a folder that are shards by their names, sealed or not; nothing else, and
/// nothing where there is no folder.
void remove_shards(const std::filesystem::path& folder);

/// The shards of a folder by number; other files are left out.
std::map<int64_t, std::filesystem::path> find_shards(const std::filesystem::path& folder);

/// The first thing in which two datasets differ, as "seed 1" and "seed 2".
struct InfoDifference {
  std::string left;
  std::string right;
};
std::optional<InfoDifference> find_difference(const DatasetInfo& left, const DatasetInfo& right);

}  // namespace medusa
