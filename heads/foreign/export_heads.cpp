#include "heads/foreign/export_heads.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace medusa {
namespace {

using nlohmann::json;

HeadLayout layout_of(ExportFormat format) {
  if (format == ExportFormat::Vllm) return HeadLayout::Vllm;
  if (format == ExportFormat::Medusa2) return HeadLayout::Medusa2;
  return format == ExportFormat::TgiV2 ? HeadLayout::TgiV2 : HeadLayout::FasterDecoding;
}

std::string dtype_name(at::ScalarType dtype) {
  if (dtype == at::kHalf) return "float16";
  return dtype == at::kBFloat16 ? "bfloat16" : "float32";
}

class Exporter {
 public:
  Exporter(const MedusaHeads& heads, const Weights& backbone, const ExportOptions& options,
           const std::string& where)
      : heads_(heads), backbone_(backbone), options_(options), where_(where) {}

  ExportedHeads run(const std::optional<ChoiceTree>& tree);

 private:
  [[noreturn]] void refuse(const std::string& found_and_expected, const std::string& remedy) const {
    throw UserError(fmt::format("{}: {}; {}", where_, found_and_expected, remedy));
  }
  void check();
  void put(HeadTensorKind part, int64_t head, int64_t layer, const at::Tensor& tensor);
  void put_blocks();
  void put_outputs();
  void put_vllm_outputs();
  void note_limits();
  json config() const;
  void put_tree(const ChoiceTree& tree);

  bool truncated() const { return !heads_.kept_tokens.empty(); }
  bool one_output() const {
    return options_.format == ExportFormat::Vllm && heads_.outputs.empty() && !options_.own_outputs;
  }
  std::string format_name() const { return enum_name(options_.format); }

  const MedusaHeads& heads_;
  const Weights& backbone_;
  const ExportOptions& options_;
  const std::string& where_;
  ExportedHeads out_;
};

/// What the format cannot say.
void Exporter::check() {
  const HeadsConfig& config = heads_.config;
  if (config.input != HeadInput::Hidden)
    refuse(fmt::format("these heads read more than the hidden state (input: {}), and no other "
                       "engine runs such heads, expected input: hidden",
                       enum_name(config.input)),
           "train heads with --set train.heads.input=hidden (the same dataset serves) and export "
           "those, or export nothing and let another engine run the model of medusa make-draft, "
           "which is a Hugging Face folder");
  if (config.correction_rank > 0)
    refuse(fmt::format("these heads are corrected by the token drafted before (correction_rank: "
                       "{}), and no other engine runs such heads, expected correction_rank: 0",
                       config.correction_rank),
           "train heads with --set train.heads.correction_rank=0 (the same dataset serves) and "
           "export those");
  if (options_.num_heads.value_or(1) > config.num_heads)
    refuse(fmt::format(
               "there are {} heads, --num-heads asks for {}, expected at most as many as there "
               "are",
               config.num_heads, *options_.num_heads),
           "ask for fewer");
  const bool loads_one_layer = options_.format == ExportFormat::FasterDecoding ||
                               options_.format == ExportFormat::TgiV2 ||
                               options_.format == ExportFormat::Medusa2;
  if (config.layers_per_head > 1 && loads_one_layer)
    refuse(fmt::format("each head has {} layers, of which a reader of '{}' would use one, expected "
                       "1 layer",
                       config.layers_per_head, format_name()),
           "use --format vllm or tensorrt-llm, or train with train.heads.layers_per_head=1");
  if (options_.format == ExportFormat::TgiV2 && is_own(config.output))
    refuse(
        "these heads have outputs of their own, which 'tgi-v2' has no place for, expected "
        "output: shared",
        "use --format fasterdecoding, which TGI reads as well");
  if (is_own(config.output) && truncated() && options_.format != ExportFormat::Vllm)
    refuse(fmt::format("these heads' own outputs hold {} of {} tokens, and '{}' cannot leave "
                       "tokens out, expected whole outputs",
                       heads_.output_rows(), heads_.vocab_size, format_name()),
           fmt::format("use --format vllm, or train with train.heads.output={}",
                       is_low_rank(config.output) ? "low_rank" : "own"));
}

void Exporter::put(HeadTensorKind part, int64_t head, int64_t layer, const at::Tensor& tensor) {
  const std::string name = head_tensor_name(out_.layout, {part, head, layer});
  // A copy each: safetensors refuses tensors that share memory.
  const at::Tensor stored =
      tensor.to(at::kCPU, options_.dtype, /*non_blocking=*/false, /*copy=*/true).contiguous();
  if (!stored.isfinite().all().item<bool>())
    refuse(fmt::format("'{}' has a number too large for {}, expected numbers that fit", name,
                       dtype_name(options_.dtype)),
           "use --store-dtype bfloat16 or float32");
  out_.tensors[name] = stored;
}

void Exporter::put_blocks() {
  const int64_t layers = heads_.config.layers_per_head;
  for (int64_t head = 0; head < out_.num_heads; ++head)
    for (int64_t layer = 0; layer < layers; ++layer) {
      const HeadBlock& block = heads_.blocks[static_cast<size_t>(head * layers + layer)];
      put(HeadTensorKind::Weight, head, layer, block.weight);
      put(HeadTensorKind::Bias, head, layer, block.bias);
    }
}

/// Truncated shared outputs become the whole LM head: its other rows are as good as the kept ones.
void Exporter::put_outputs() {
  for (int64_t head = 0; head < out_.num_heads; ++head)
    put(HeadTensorKind::Output, head, heads_.config.layers_per_head,
        heads_.outputs.empty() ? backbone_.lm_head : whole_output(heads_, head));
  if (!heads_.outputs.empty()) return;
  out_.notes.push_back(fmt::format(
      "the engine wants an output for each head: {} copies of the LM head are written, {:.1f} MB",
      out_.num_heads,
      static_cast<double>(out_.num_heads * backbone_.lm_head.numel() *
                          static_cast<int64_t>(at::elementSize(options_.dtype))) /
          1e6));
  if (truncated())
    out_.notes.push_back(fmt::format(
        "the engine cannot leave tokens out: heads that drafted among {} draft among all {}",
        heads_.output_rows(), heads_.vocab_size));
}

void Exporter::put_vllm_outputs() {
  if (truncated())
    out_.tensors[head_tensor_name(out_.layout, {HeadTensorKind::TokenMap})] =
        at::tensor(heads_.kept_tokens, at::kLong);
  const at::Tensor shared = shared_output(heads_, backbone_);
  if (one_output()) return put(HeadTensorKind::SharedOutput, 0, 0, shared);
  for (int64_t head = 0; head < out_.num_heads; ++head)
    put(HeadTensorKind::Output, head, 0,
        heads_.outputs.empty() ? shared : whole_output(heads_, head));
}

void Exporter::note_limits() {
  if (is_low_rank(heads_.config.output) && options_.format != ExportFormat::TgiV2)
    out_.notes.push_back(fmt::format(
        "no other engine multiplies outputs of two factors: those of rank {} are multiplied out, "
        "{:.1f} million numbers each",
        heads_.config.output_rank,
        static_cast<double>(heads_.output_rows() * heads_.hidden_size) / 1e6));
  switch (options_.format) {
    case ExportFormat::FasterDecoding:
      if (out_.num_heads != 5)
        out_.notes.push_back(fmt::format(
            "FasterDecoding's code always makes 5 heads: of these {} {}; its own trees use 4, "
            "pass it the tree written here",
            out_.num_heads,
            out_.num_heads < 5 ? "are trained, the others draft at random and cost time"
                               : "it loads the first 5"));
      out_.notes.emplace_back("TGI drafts a chain of first drafts, no tree");
      break;
    case ExportFormat::TgiV2:
      out_.notes.emplace_back("TGI drafts a chain of first drafts, no tree");
      break;
    case ExportFormat::Vllm:
      out_.notes.push_back(fmt::format(
          "start vLLM with --speculative-config '{{\"method\": \"medusa\", \"model\": FOLDER, "
          "\"num_speculative_tokens\": {}}}'; more tokens than heads run on numbers never set",
          out_.num_heads));
      out_.notes.emplace_back("vLLM drafts a chain of first drafts, no tree");
      break;
    case ExportFormat::TensorRtLlm:
      out_.notes.push_back(fmt::format(
          "convert with --medusa_model_dir FOLDER --num_medusa_heads {} --num_medusa_layers {}; "
          "only versions that still have the TensorRT backend run Medusa",
          out_.num_heads, heads_.config.layers_per_head));
      break;
    case ExportFormat::Medusa2:
      out_.notes.emplace_back(
          "FasterDecoding's code runs such models of the architectures llama and mistral; TGI and "
          "vLLM look for heads in a folder of their own: export another format for them");
      break;
  }
}

/// No `architectures` but for vLLM's own class: TGI and vLLM both take another one for another
/// kind of model. `medusa_fc_bias` everywhere: without it vLLM drops the biases without a word.
json Exporter::config() const {
  const int64_t layers = heads_.config.layers_per_head;
  json out{{"base_model_name_or_path", options_.base_model},
           {"hidden_size", heads_.hidden_size},
           {"vocab_size", heads_.vocab_size},
           {"medusa_fc_bias", true}};
  if (options_.format != ExportFormat::Medusa2)  // those are the model's own
    out.update({{"truncated_vocab_size",
                 options_.format == ExportFormat::Vllm ? heads_.output_rows() : heads_.vocab_size},
                {"torch_dtype", dtype_name(options_.dtype)},
                {"transformers_version", "4.31.0"}});
  if (options_.format == ExportFormat::Vllm) {
    out["model_type"] = "medusa";
    out["architectures"] = json::array({"MedusaModel"});
    out["num_heads"] = out_.num_heads;
    out["num_hidden_layers"] = layers;
    if (one_output()) out["original_lm_head"] = true;
    return out;
  }
  out["medusa_num_heads"] = out_.num_heads;
  out["medusa_num_layers"] = layers;
  if (options_.format == ExportFormat::Medusa2) return out;
  out["version"] = "2";
  if (options_.format == ExportFormat::TensorRtLlm) out["num_medusa_heads"] = out_.num_heads;
  return out;
}

void Exporter::put_tree(const ChoiceTree& tree) {
  ChoiceTree kept = tree;
  std::erase_if(kept.paths, [&](const RankPath& path) {
    return static_cast<int64_t>(path.size()) > out_.num_heads;
  });
  if (options_.format == ExportFormat::FasterDecoding || options_.format == ExportFormat::Medusa2) {
    out_.tree_file = "medusa_choices.py";
    out_.tree = "medusa_choices = " + medusa_tuples(kept) + "\n";
  } else if (options_.format == ExportFormat::TensorRtLlm) {
    out_.tree_file = "medusa_choices.json";
    out_.tree = rank_lists(kept) + "\n";
  }
  if (kept.depth() < out_.num_heads)
    out_.notes.push_back(
        fmt::format("the tree uses {} of {} heads; --num-heads {} leaves out what only costs time",
                    kept.depth(), out_.num_heads, kept.depth()));
}

ExportedHeads Exporter::run(const std::optional<ChoiceTree>& tree) {
  check();
  out_.format = options_.format;
  out_.layout = layout_of(options_.format);
  out_.num_heads = options_.num_heads.value_or(heads_.config.num_heads);
  put_blocks();
  if (options_.format == ExportFormat::Vllm)
    put_vllm_outputs();
  else if (options_.format != ExportFormat::TgiV2)
    put_outputs();
  else if (truncated())
    out_.notes.push_back(fmt::format(
        "TGI runs the whole LM head: heads that drafted among {} tokens draft among all {}",
        heads_.output_rows(), heads_.vocab_size));
  note_limits();
  if (tree) put_tree(*tree);
  out_.config = json_text(config(), 2) + "\n";
  return std::move(out_);
}

std::string paths_text(const ChoiceTree& tree, const char* open, const char* close, bool comma) {
  std::string text;
  for (const RankPath& path : tree.paths) {
    text += text.empty() ? "" : ", ";
    text += open;
    for (size_t i = 0; i < path.size(); ++i)
      text += fmt::format("{}{}", i > 0 ? ", " : "", path[i]);
    text += path.size() == 1 && comma ? "," : "";
    text += close;
  }
  return "[" + text + "]";
}

}  // namespace

ExportedHeads export_heads(const MedusaHeads& heads, const Weights& backbone,
                           const std::optional<ChoiceTree>& tree, const ExportOptions& options,
                           const std::string& where) {
  return Exporter(heads, backbone, options, where).run(tree);
}

std::string medusa_tuples(const ChoiceTree& tree) { return paths_text(tree, "(", ")", true); }
std::string rank_lists(const ChoiceTree& tree) { return paths_text(tree, "[", "]", false); }

}  // namespace medusa
