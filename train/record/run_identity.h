// What decides a training run: its seed, the settings that are not marked as cosmetic, and the
// fingerprints of what it is made of. A checkpoint keeps it, and continues no other run.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/fields.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

/// The identity of a run. Settings say by their marks (FieldMark) whether they belong to it.
class RunIdentity {
 public:
  /// @param entries  "key=value" of what decides.
  RunIdentity(std::initializer_list<std::string> entries = {});

  void add(const std::string& key, const std::string& value);

  /// Adds what every run has: its seed, what it is trained on (fingerprints and weights, not
  /// places), and the backbone's fingerprint.
  void add_run(uint64_t seed, const DatasetReader& dataset, const std::string& backbone);

  /// Adds what training computes in. bfloat16 adds nothing: its checkpoints are older than the key.
  void add_dtype(c10::ScalarType dtype);

  /// Adds a section's settings under their keys.
  template <typename Config>
  void add_settings(const std::string& section, Config config) {
    Config defaults;
    FieldLister now(section), otherwise(section);
    config.fields(now);
    defaults.fields(otherwise);
    add_lines(now.lines(), otherwise.lines());
  }

  /// Makes a section's settings, but for those that were added, say nothing: another stage reads
  /// them.
  template <typename Config>
  void ignore_settings(const std::string& section) {
    Config config;
    FieldLister lister(section);
    config.fields(lister);
    for (const FieldHelp& line : lister.lines()) silent_.push_back(line.key);
  }

  /// Says how many processes train together. It is not compared as such: what they train on is that
  /// of one process with a batch of all their positions, which train.batch_positions then says.
  void set_processes(int64_t count) { processes_ = count; }

  /// Says on how many CPU threads LibTorch adds up what is trained. It is not compared: other
  /// threads change the last bits alone, and another machine may not have as many.
  void set_threads(int64_t count) { threads_ = count; }

  /// What a checkpoint keeps: "key=value" of everything that decides.
  std::vector<std::string> entries() const;

  /// Of what decides, but for settings at their defaults: one that comes later changes nothing.
  std::string fingerprint() const;

  /// Compares with what a checkpoint was made with. A setting that it does not know came later:
  /// then its default is what it was made with.
  /// @param folder  of the checkpoint.
  /// @throws UserError  the first difference.
  void check(const std::filesystem::path& folder, const std::vector<std::string>& saved) const;

 private:
  struct Entry {
    std::string key, value;
    std::string otherwise;  // of a setting: its default; else empty
  };
  void add_lines(const std::vector<FieldHelp>& lines, const std::vector<FieldHelp>& defaults);

  std::vector<Entry> entries_;
  std::vector<std::string> silent_;  // keys that say nothing here, and did once
  int64_t processes_ = 1;
  int64_t threads_ = 0;  // 0: they change nothing
};

/// The CPU threads that a checkpoint's entries name; 0: they changed nothing, or were not kept.
int64_t threads_in(const std::vector<std::string>& entries);

}  // namespace medusa
