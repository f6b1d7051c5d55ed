// How text is decoded: the settings of drafter, rule and sampling.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/fields.h"
#include "infer/drafter_kind.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/blockwise_drafter.h"
#include "infer/drafters/eagle3_drafter.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/drafters/prompt_lookup_drafter.h"
#include "infer/drafters/research/draft_model_drafter.h"
#include "infer/drafters/research/jacobi_drafter.h"
#include "infer/drafters/research/lookahead_drafter.h"
#include "infer/drafters/research/sequoia_drafter.h"
#include "infer/drafters/research/specinfer_drafter.h"
#include "infer/drafters/retrieval_drafter.h"
#include "infer/drafters/shared_drafter.h"
#include "infer/rules/blockwise_rule.h"
#include "infer/rules/typical_rule.h"
#include "infer/sampling.h"

namespace medusa {

enum class RuleKind {
  Auto,  // greedy at temperature 0, match above it
  Greedy,
  Match,
  Nucleus,  // match, with a top_p below 1 asked for: the name that Medusa's code has for it
  Rejection,
  Typical,
  Blockwise,
};

template <>
struct EnumNames<RuleKind> {
  static constexpr auto values = std::to_array<std::pair<const char*, RuleKind>>({
      {"auto", RuleKind::Auto},
      {"greedy", RuleKind::Greedy},
      {"match", RuleKind::Match},
      {"nucleus", RuleKind::Nucleus},
      {"rejection", RuleKind::Rejection},
      {"typical", RuleKind::Typical},
      {"blockwise", RuleKind::Blockwise},
  });
};

/// The drafter's block and the rule that belongs to it.
struct BlockwiseSection {
  BlockwiseConfig drafter;
  BlockwiseRuleConfig rule;

  template <typename Fields>
  void fields(Fields& f) {
    drafter.fields(f);
    rule.fields(f);
  }
  void validate() const {}
};

struct InferConfig {
  DrafterKind drafter = DrafterKind::Medusa;
  RuleKind rule = RuleKind::Auto;
  SamplingConfig sampling;
  TypicalConfig typical;
  int32_t max_new_tokens = 256;
  bool graphs = true;
  // One section for each drafter that has settings, under its name.
  MedusaConfig medusa;
  BlockwiseSection blockwise;
  DraftModelConfig draft_model;
  PromptLookupConfig prompt_lookup;
  JacobiConfig jacobi;
  LookaheadConfig lookahead;
  SpecinferConfig specinfer;
  SequoiaConfig sequoia;
  LayerSkipConfig layer_skip;
  RetrievalConfig retrieval;
  SharedConfig shared;
  Eagle3Config eagle3;
  MergeConfig merge;

  template <typename Fields>
  void fields(Fields& f) {
    f("drafter", drafter, "who proposes tokens");
    f("rule", rule, "which proposals stand; auto: greedy at temperature 0, match above it");
    sampling.fields(f);
    typical.fields(f);
    f("max_new_tokens", max_new_tokens, "most tokens of one answer", at_least(1));
    f("graphs", graphs,
      "on a GPU: CUDA graphs, of whole steps where drafter and rule allow it, else of passes "
      "(true), or the host starts each kernel (false)");
    f.section("medusa", medusa, spec_of(DrafterKind::Medusa).summary);
    f.section("blockwise", blockwise, spec_of(DrafterKind::Blockwise).summary);
    f.section("draft_model", draft_model, spec_of(DrafterKind::DraftModel).summary);
    f.section("prompt_lookup", prompt_lookup, spec_of(DrafterKind::PromptLookup).summary);
    f.section("jacobi", jacobi, spec_of(DrafterKind::Jacobi).summary);
    f.section("lookahead", lookahead, spec_of(DrafterKind::Lookahead).summary);
    f.section("specinfer", specinfer, spec_of(DrafterKind::Specinfer).summary);
    f.section("sequoia", sequoia, spec_of(DrafterKind::Sequoia).summary);
    f.section("layer_skip", layer_skip, spec_of(DrafterKind::LayerSkip).summary);
    f.section("retrieval", retrieval, spec_of(DrafterKind::Retrieval).summary);
    f.section("shared", shared, spec_of(DrafterKind::Shared).summary);
    f.section("eagle3", eagle3, spec_of(DrafterKind::Eagle3).summary);
    f.section("merge", merge, spec_of(DrafterKind::Merge).summary);
  }
  /// @throws UserError  the rule cannot work at this temperature or with this drafter.
  void validate() const;
};

/// The rule that Auto stands for.
RuleKind resolved_rule(const InferConfig& config);

}  // namespace medusa
