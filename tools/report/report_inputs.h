// What a run folder holds, as far as the report shows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/choice_tree.h"
#include "tools/report/html.h"
#include "tools/report/reported_comparison.h"
#include "tools/report/training_curve.h"

namespace medusa {

/// Something that was read, or one sentence on why it is not there.
template <typename T>
struct ReportPart {
  std::optional<T> value;
  std::string absence;
};

struct DatasetSummary {
  DatasetInfo info;
  std::string fingerprint;
  int64_t num_samples = 0;
  int64_t num_answer_tokens = 0;
  int64_t num_hidden = 0;  // samples whose states are recorded
  bool complete = true;
};

struct ReportInputs {
  std::string run;  // name of the run, shown in the title
  ReportPart<DatasetSummary> dataset;
  ReportPart<TrainingCurve> training;
  std::optional<TrainingCurve> joint;  // of the joint stage; most runs have none
  ReportPart<HeadsManifest> heads;
  ReportPart<ChoiceTree> tree;
  ReportPart<ReportedComparison> comparison;
  std::string settings;  // YAML text of the newest artifact that keeps it; empty: none does
  std::vector<PageLink> other_pages;  // of the run
  int64_t reload_s = 0;  // the page loads itself again after so many seconds; 0: it does not
};

/// Whether the comparison is known to be of other heads, or of another model, than the run's.
bool compares_other_heads(const ReportInputs& inputs);

DatasetSummary summarize(const DatasetReader& dataset);

/// Reads dataset/, train/metrics.jsonl, joint/train/metrics.jsonl, heads/, tree.yaml and
/// compare.json of a run folder. What is missing or damaged becomes a sentence: a report of the
/// rest is worth having.
/// @param dataset  of the run if it was read before: to read one again takes seconds.
/// @throws UserError  there is no such folder.
ReportInputs read_report_inputs(const std::filesystem::path& run_folder,
                                std::optional<DatasetSummary> dataset = {});

}  // namespace medusa
