// A file that TensorBoard opens: records of length, bytes and their checksums, each an Event of
// TensorFlow's event.proto. Of that only what a curve needs: time, step, tag, number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/record/appended_file.h"

namespace medusa {

/// Tag and number: "train/loss_nats", 2.5. The part before the slash is TensorBoard's group.
using Scalars = std::vector<std::pair<std::string, double>>;

/// Appends a record per report; one is there whole or cut off by a crash, and then removed by the
/// next run.
class EventFile {
 public:
  /// Its name in a folder; TensorBoard knows such files by "tfevents".
  static constexpr const char* kName = "events.out.tfevents.medusa";

  /// Continues the file: keeps records up to this step, so that a resumed run repeats none; from
  /// step 0 on it begins anew.
  /// @throws UserError  the folder cannot be written.
  EventFile(const std::filesystem::path& file, int64_t step);

  /// Adds nothing that an earlier run has left: a record of this step with the same first tag.
  /// @param scalars  kept in float32, as TensorBoard's; at least one.
  /// @throws UserError  the disk is full.
  void add(int64_t step, const Scalars& scalars);

  /// Lets what was added outlast a power cut.
  /// @throws UserError  the disk fails.
  void flush() { file_.flush(); }

 private:
  /// Step and first tag of the records that an earlier run left, and the records.
  struct Kept {
    std::set<std::pair<int64_t, std::string>> reports;
    std::string records;
  };
  static Kept records_up_to(const std::filesystem::path& file, int64_t step);
  EventFile(const std::filesystem::path& file, Kept kept);

  std::set<std::pair<int64_t, std::string>> kept_;
  AppendedFile file_;
};

/// A record that was read back.
struct Event {
  double wall_time_s = 0;  // since 1970
  int64_t step = 0;
  Scalars scalars;  // empty: the file's first record, which says its version
};

/// The whole records of a file, up to the first that was cut off.
/// @throws UserError  it does not begin as an event file; a record's checksum is wrong.
std::vector<Event> read_event_file(const std::filesystem::path& file);

/// CRC-32C (Castagnoli), the checksum of the records, of the bytes of a text.
uint32_t crc32c(std::string_view bytes);

}  // namespace medusa
