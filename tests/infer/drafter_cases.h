// What the tests of every drafter run over: each kind, and kinds that a setting turns into another.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "heads/heads_config.h"
#include "infer/infer_config.h"

namespace medusa::fixtures {

struct DrafterCase {
  std::string name;
  InferConfig config;
  HeadInput heads = HeadInput::Root;  // what the heads it is given read
  int64_t correction_rank = 0;        // of these heads

  friend void PrintTo(const DrafterCase& drafter, std::ostream* out) { *out << drafter.name; }
};

inline DrafterCase case_of(DrafterKind kind) {
  DrafterCase out{enum_name(kind), {}};
  out.config.drafter = kind;
  return out;
}

/// A new value of DrafterKind is among them without a line here.
inline std::vector<DrafterCase> drafter_cases() {
  std::vector<DrafterCase> out;
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values) out.push_back(case_of(kind));
  DrafterCase dynamic = case_of(DrafterKind::Medusa);
  dynamic.config.medusa.dynamic = true;
  dynamic.config.medusa.nodes = 12;
  dynamic.name = "medusa_dynamic";
  out.push_back(dynamic);
  DrafterCase adaptive = case_of(DrafterKind::Medusa);
  adaptive.config.medusa.adaptive = true;
  adaptive.name = "medusa_adaptive";
  out.push_back(adaptive);
  for (DrafterCase each :
       {case_of(DrafterKind::Medusa), dynamic, case_of(DrafterKind::Blockwise)}) {
    each.heads = HeadInput::Sequential;
    each.name += "_sequential";
    out.push_back(each);
  }
  DrafterCase merged = case_of(DrafterKind::Merge);
  merged.config.merge.drafters = {DrafterKind::PromptLookup, DrafterKind::Eagle3};
  merged.name += "_eagle3";
  DrafterCase folded = case_of(DrafterKind::Specinfer);
  folded.config.specinfer.drafters = {DrafterKind::Eagle3};
  folded.name += "_eagle3";
  out.insert(out.end(), {merged, folded});
  // Whoever asks heads asks them behind their prefix layer, if they have one.
  DrafterCase sequoia = case_of(DrafterKind::Sequoia);
  sequoia.config.sequoia.source = SequoiaSource::Medusa;
  sequoia.name += "_medusa";
  DrafterCase specinfer = case_of(DrafterKind::Specinfer);
  specinfer.config.specinfer.drafters = {DrafterKind::Medusa};
  specinfer.name += "_medusa";
  for (DrafterCase each : {case_of(DrafterKind::Medusa), dynamic, adaptive, sequoia, specinfer,
                           case_of(DrafterKind::Blockwise), case_of(DrafterKind::Merge)}) {
    each.heads = HeadInput::PrefixSequential;
    each.name += "_prefix";
    out.push_back(each);
  }
  for (DrafterCase each : {case_of(DrafterKind::Medusa), dynamic, adaptive, sequoia, specinfer,
                           case_of(DrafterKind::Blockwise), case_of(DrafterKind::Merge)}) {
    each.correction_rank = 32;
    each.name += "_corrected";
    out.push_back(each);
  }
  return out;
}

}  // namespace medusa::fixtures
