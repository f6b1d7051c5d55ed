#include "heads/foreign/diagnosis.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/formats/safetensors_file.h"
#include "base/formats/torch_file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEverywhere = "every engine";

bool same_bytes(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  return a.dtype == b.dtype && a.bytes.size() == b.bytes.size() &&
         (a.bytes.data() == b.bytes.data() ||
          std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

bool all_zero(const SafetensorsEntry& entry) {
  return std::all_of(entry.bytes.begin(), entry.bytes.end(), [](uint8_t b) { return b == 0; });
}

class Diagnosis {
 public:
  Diagnosis(const ForeignHeads& heads, const Weights& backbone)
      : heads_(heads), hints_(heads.files.hints), backbone_(backbone) {}

  std::vector<HeadFinding> run();

 private:
  void add(Severity severity, const char* code, std::string engines, std::string text) {
    out_.push_back({severity, code, std::move(engines), std::move(text)});
  }
  void failure(const char* code, const char* engines, const std::string& text) {
    add(Severity::Failure, code, engines, where_ + ": " + text);
  }
  void warning(const char* code, const char* engines, const std::string& text) {
    add(Severity::Warning, code, engines, where_ + ": " + text);
  }

  void look_at_sizes();
  void look_at_config();
  void look_at_biases();
  void look_at_layers();
  void look_at_outputs();
  void look_at_files();
  void compare_copies();

  const ForeignHeads& heads_;
  const HeadHints& hints_;
  const Weights& backbone_;
  const std::string where_ = heads_.files.path.string();
  std::vector<HeadFinding> out_;
};

/// config.json may name fewer heads than there are, as published ones do, or more.
void Diagnosis::look_at_sizes() {
  for (const HeadMisfit& misfit : hint_misfits(heads_, std::nullopt)) {
    if (misfit.code != "head_count") {
      add(Severity::Failure, misfit.code.c_str(), "every engine that trusts config.json",
          misfit.text);
    } else if (*hints_.num_heads > heads_.num_heads) {
      add(Severity::Failure, "head_count", "vLLM, TGI, TensorRT-LLM",
          misfit.text + " (vLLM fills the missing heads with numbers never set)");
    } else {
      add(Severity::Failure, "head_count", "vLLM, TGI",
          misfit.text + " (these engines leave the further heads unused without a word)");
    }
  }
  for (const HeadMisfit& misfit : model_misfits(heads_, backbone_.config))
    add(Severity::Failure, misfit.code.c_str(), kEverywhere, misfit.text);
  if (heads_.token_map != nullptr && hints_.vocab_size &&
      *hints_.vocab_size != backbone_.config.vocab_size)
    failure("other_vocabulary", "vLLM",
            fmt::format("config.json says vocab_size {}, the backbone has {}, expected the same: "
                        "vLLM then forgets the token_map; correct it",
                        *hints_.vocab_size, backbone_.config.vocab_size));
}

void Diagnosis::look_at_config() {
  const auto& names = hints_.architectures;
  const bool is_medusa = names == std::vector<std::string>{"MedusaModel"};
  if (!names.empty() && !is_medusa && !holds_whole_model(heads_.layout))
    failure("architectures", "TGI, vLLM",
            fmt::format("config.json names the architecture {}, expected none (or MedusaModel for "
                        "vLLM): both engines then build another kind of model; remove the key",
                        names.front()));
  if (is_medusa && heads_.layout != HeadLayout::Vllm)
    failure("architectures", "TGI",
            "config.json has 'architectures', expected no such key: TGI then runs without heads; "
            "remove it");
  if (heads_.layout == HeadLayout::FasterDecoding)
    warning("old_names", "vLLM up to 0.11",
            "tensors are named as in the paper's code, expected blocks.0.layers.0.weight there: "
            "those versions pass them over without a word; use medusa export --format vllm");
}

void Diagnosis::look_at_biases() {
  if (heads_.has_bias && hints_.has_bias != true && !holds_whole_model(heads_.layout))
    failure("bias_flag", "vLLM",
            "config.json does not say \"medusa_fc_bias\": true, expected it beside stored biases: "
            "vLLM leaves them out without a word; add it");
  if (!heads_.has_bias)
    failure("bias_missing", "FasterDecoding, TGI, TensorRT-LLM",
            "the layers have no bias, expected one: FasterDecoding's code leaves random ones in "
            "place, the others refuse; import the heads and export them again, which writes zeros");
}

/// The paper's code repeats one block object for all layers of a head.
void Diagnosis::look_at_layers() {
  const bool untrained =
      std::all_of(heads_.weights.begin(), heads_.weights.end(),
                  [](const SafetensorsEntry* weight) { return all_zero(*weight); });
  if (untrained)
    failure("untrained", kEverywhere,
            "every layer's weight is zero, expected trained ones: such heads repeat the draft of "
            "the LM head; train them");
  const auto layers = static_cast<size_t>(heads_.layers_per_head);
  if (layers < 2) return;
  bool same = true;
  for (size_t i = 0; i < heads_.weights.size(); ++i)
    same = same && same_bytes(*heads_.weights[i], *heads_.weights[i / layers * layers]);
  if (same)
    warning("shared_block", kEverywhere,
            fmt::format("the {} layers of each head are one and the same, expected layers of their "
                        "own: they were trained by code that repeats one block; one layer would "
                        "have cost less",
                        layers));
  else
    failure("layers_collapse", "FasterDecoding, TGI's V2",
            fmt::format("each head has {} different layers, expected 1: FasterDecoding's code "
                        "repeats the last one without a word; use medusa export --format vllm",
                        layers));
}

void Diagnosis::look_at_outputs() {
  if (const SafetensorsEntry* output = heads_.shared_output) {
    const at::Tensor expected = backbone_.lm_head.to(output->dtype == "F16"    ? at::kHalf
                                                     : output->dtype == "BF16" ? at::kBFloat16
                                                                               : at::kFloat);
    if (heads_.token_map == nullptr && output->shape == expected.sizes().vec() &&
        std::memcmp(output->bytes.data(), expected.contiguous().data_ptr(), output->bytes.size()) !=
            0)
      failure("lm_head_mismatch", kEverywhere,
              fmt::format("'{}', the one output of all heads, is not this model's LM head, "
                          "expected a copy of it; use the model that the heads were trained on",
                          output->name));
  }
  const bool has_output = !heads_.outputs.empty() || heads_.shared_output != nullptr;
  if (hints_.one_output && heads_.shared_output == nullptr && heads_.outputs.empty())
    failure("lm_head_missing", "vLLM",
            "config.json says original_lm_head, but no lm_head.weight is stored, expected a copy "
            "of the model's: vLLM does not take the model's own; export again");
  else if (!has_output)
    failure("no_outputs", "FasterDecoding, vLLM, TensorRT-LLM",
            "no outputs are stored, which only TGI's V2 layout means, expected one for each head: "
            "FasterDecoding and vLLM run with numbers never set; use medusa export --format "
            "fasterdecoding or vllm");
  if (heads_.token_map != nullptr && !hints_.truncated_vocab_size)
    failure("token_map_ignored", "vLLM",
            "there is a token_map, but config.json has no truncated_vocab_size, expected it: vLLM "
            "then passes the map over; add it");
}

void Diagnosis::compare_copies() {
  const fs::path folder = heads_.files.path;
  const TorchFile pt(folder / kHeadsPt);
  const SafetensorsFile safe(folder / kHeadsSafetensors);
  const auto same = [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.name == b.name && a.shape == b.shape && same_bytes(a, b);
  };
  if (!std::equal(pt.entries().begin(), pt.entries().end(), safe.entries().begin(),
                  safe.entries().end(), same))
    failure("files_differ", "FasterDecoding",
            fmt::format("{} and {} hold different heads, expected the same: which ones run depends "
                        "on the engine; remove the wrong one",
                        kHeadsPt, kHeadsSafetensors));
}

/// FasterDecoding opens the .pt only, TGI the .safetensors only, vLLM every .safetensors.
void Diagnosis::look_at_files() {
  const fs::path& folder = heads_.files.path;
  if (!fs::is_directory(folder) || holds_whole_model(heads_.layout)) return;
  const bool pt = fs::exists(folder / kHeadsPt), safe = fs::exists(folder / kHeadsSafetensors);
  if (pt && safe) compare_copies();
  if (safe && !pt)
    warning("no_pt", "FasterDecoding",
            fmt::format("there is no {}, the only file that its code opens, expected one; use "
                        "medusa export --format fasterdecoding",
                        kHeadsPt));
  if (pt && !safe)
    warning("no_safetensors", "TGI",
            fmt::format("there is no {}, the only file that it opens, expected one; use medusa "
                        "export --format fasterdecoding",
                        kHeadsSafetensors));
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    count += entry.path().extension() == ".safetensors" ? 1 : 0;
  if (count > 1)
    failure("several_files", "vLLM",
            fmt::format("there are {} .safetensors files, expected one: vLLM reads all of them, "
                        "the last one wins; keep each layout in a folder of its own",
                        count));
}

std::vector<HeadFinding> Diagnosis::run() {
  look_at_sizes();
  look_at_config();
  look_at_biases();
  look_at_layers();
  look_at_outputs();
  look_at_files();
  return std::move(out_);
}

}  // namespace

std::vector<HeadFinding> diagnose(const ForeignHeads& heads, const Weights& backbone) {
  return Diagnosis(heads, backbone).run();
}

std::vector<HeadFinding> diagnose_tree(const ChoiceTree& tree, int64_t num_heads,
                                       const std::string& file) {
  const int64_t depth = tree.depth();
  if (depth > num_heads)
    return {{Severity::Failure, "tree_too_deep", kEverywhere,
             fmt::format("{}: the tree has paths of {} drafts, there are {} heads, expected a "
                         "head for each; calibrate again or pass another tree",
                         file, depth, num_heads)}};
  if (depth < num_heads)
    return {{Severity::Warning, "heads_unused", kEverywhere,
             fmt::format("{}: the tree asks {} of {} heads, expected all: the others cost time and "
                         "are never used; export with --num-heads {} or calibrate more nodes",
                         file, depth, num_heads, depth)}};
  return {};
}

}  // namespace medusa
