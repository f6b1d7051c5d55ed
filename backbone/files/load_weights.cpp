#include "backbone/files/load_weights.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "backbone/architecture.h"
#include "backbone/files/dequantize.h"
#include "backbone/files/model_files.h"
#include "backbone/files/rope_permutation.h"
#include "backbone/files/tensor_check.h"
#include "backbone/weights.h"
#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "base/progress.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// A parameter's name in both kinds of files; {} stands for the layer.
struct Name {
  const char* hugging_face;
  const char* gguf;
};

constexpr Name kEmbedding{"model.embed_tokens.weight", "token_embd.weight"};
constexpr Name kFinalNorm{"model.norm.weight", "output_norm.weight"};
constexpr Name kLmHead{"lm_head.weight", "output.weight"};
constexpr Name kAttentionNorm{"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"};
constexpr Name kQuery{"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"};
constexpr Name kKey{"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"};
constexpr Name kValue{"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"};
// Of the architectures with fused matrices; Phi-3's GGUF files call gate and up together "up".
constexpr Name kQkv{"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"};
constexpr Name kGateUp{"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"};
constexpr Name kQueryBias{"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"};
constexpr Name kKeyBias{"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"};
constexpr Name kValueBias{"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"};
constexpr Name kQueryNorm{"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"};
constexpr Name kKeyNorm{"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"};
constexpr Name kOutput{"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"};
constexpr Name kMlpNorm{"model.layers.{}.post_attention_layernorm.weight",
                        "blk.{}.ffn_norm.weight"};
constexpr Name kGate{"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"};
constexpr Name kUp{"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"};
constexpr Name kDown{"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"};

/// Converts a stored matrix row by row, so that no second copy of it exists in float32.
/// @param out    [rows, columns] float32 or bfloat16 on the CPU, contiguous rows.
/// @param order  the row of out that each stored row becomes; empty: its own.
void convert_rows(const StoredTensor& stored, at::Tensor out, const std::vector<int64_t>& order) {
  const int64_t rows = out.size(0), columns = out.size(1);
  const auto row_bytes = stored.bytes.size() / static_cast<size_t>(rows);
  const bool is_float = out.scalar_type() == at::kFloat;
  auto* floats = is_float ? out.data_ptr<float>() : nullptr;
  auto* halves = is_float ? nullptr : out.data_ptr<at::BFloat16>();
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(columns));
    for (int64_t i = begin; i < end; ++i) {
      const auto bytes = stored.bytes.subspan(static_cast<size_t>(i) * row_bytes, row_bytes);
      if (stored.fp8)
        decode_fp8_row(*stored.fp8, i, bytes, row);
      else
        dequantize(stored.type, bytes, row);
      const int64_t target = (order.empty() ? i : order[static_cast<size_t>(i)]) * columns;
      for (int64_t j = 0; j < columns; ++j) {
        const float value = row[static_cast<size_t>(j)];
        if (is_float)
          floats[target + j] = value;
        else
          halves[target + j] = at::BFloat16(value);  // rounds to nearest, ties to even
      }
    }
  });
  forget_pages(stored.bytes);  // or the file stays in memory beside the weights
}

/// Takes each tensor of the files once, checks it, and puts it where it belongs.
class Loader {
 public:
  Loader(const ModelFiles& files, at::ScalarType dtype, at::Device device, QuantKind kind,
         ProgressFunction progress)
      : files_(files),
        architecture_(*find_architecture(files.config.architecture)),
        dtype_(dtype),
        device_(device),
        kind_(kind),
        progress_(std::move(progress), "load", "tensors",
                  static_cast<int64_t>(files.tensors.size())) {}

  Weights non_layer();
  LayerWeights layer(int64_t index);
  void finish(const std::string& note = {}) { progress_.finish(note); }
  void check_nothing_left();

 private:
  std::string name_of(const Name& name, int64_t layer) const;
  const StoredTensor& take(const std::string& name, at::IntArrayRef shape);
  at::Tensor vector(const Name& name, int64_t layer, int64_t size);
  at::Tensor matrix(const Name& name, int64_t layer, int64_t rows, int64_t columns);
  void fill(const Name& name, int64_t layer, at::Tensor out, int64_t heads = 0);
  std::vector<int64_t> order_of(int64_t rows, int64_t heads) const;
  QuantizedMatrix blocks(const Name& name, int64_t layer, int64_t rows, int64_t columns,
                         int64_t heads = 0);
  void load_matrices(int64_t index, LayerWeights& weights);
  void load_blocks(int64_t index, LayerQuantized& weights);
  at::Tensor lm_head(const at::Tensor& embedding);

  const ModelFiles& files_;
  const Architecture& architecture_;
  at::ScalarType dtype_;
  at::Device device_;
  QuantKind kind_;
  std::set<std::string> taken_;
  Progress progress_;
};

std::string Loader::name_of(const Name& name, int64_t layer) const {
  const std::string_view text = files_.layout == ModelLayout::Gguf ? name.gguf : name.hugging_face;
  return fmt::format(fmt::runtime(text), layer);
}

const StoredTensor& Loader::take(const std::string& name, at::IntArrayRef shape) {
  const auto found = files_.tensors.find(name);
  if (found == files_.tensors.end())
    throw UserError(
        fmt::format("{}: has no tensor '{}', expected one of shape {}; copy or "
                    "download the model again, or use another",
                    files_.path.string(), name, shape_text(shape)));
  const StoredTensor& stored = found->second;
  if (!has_shape(stored.shape, shape))
    throw UserError(
        fmt::format("{}: tensor '{}' has shape {}, expected {} by the model's "
                    "settings; use weights and settings of the same model",
                    stored.file.string(), name, shape_text(stored.shape), shape_text(shape)));
  taken_.insert(name);
  progress_.update(static_cast<int64_t>(taken_.size()));
  return stored;
}

at::Tensor Loader::vector(const Name& name, int64_t layer, int64_t size) {
  const StoredTensor& stored = take(name_of(name, layer), {size});
  at::Tensor out = at::empty({1, size}, at::kFloat);
  convert_rows(stored, out, {});
  return out.view({size}).to(device_);
}

/// @param heads  of queries and keys that the matrix begins with.
void Loader::fill(const Name& name, int64_t layer, at::Tensor out, int64_t heads) {
  const StoredTensor& stored = take(name_of(name, layer), out.sizes());
  convert_rows(stored, out, order_of(out.size(0), heads));
}

/// Our row of each of the file's; empty where they are the same.
std::vector<int64_t> Loader::order_of(int64_t rows, int64_t heads) const {
  std::vector<int64_t> order =
      rope_permutation(files_.config, heads,
                       files_.layout == ModelLayout::Gguf && architecture_.gguf_interleaves_rope);
  if (!order.empty())
    while (std::ssize(order) < rows) order.push_back(std::ssize(order));
  return order;
}

/// Scales are of half precision, which keeps little of a matrix whose numbers are all tiny.
void expect_quantizable(const StoredTensor& stored, const std::string& name,
                        const at::Tensor& elements) {
  constexpr float kLeast = 127 * 0x1p-20F;  // scales are within a thirtieth from there on
  const auto largest = elements.abs().max().item<float>();
  if (largest == 0 || !(largest < kLeast)) return;
  throw UserError(fmt::format(
      "{}: tensor '{}' has no number above {:.3g}, expected one of at least {:.3g}, "
      "as 8-bit blocks keep a half-precision scale for 32 numbers; load it with --dtype bfloat16",
      stored.file.string(), name, largest, kLeast));
}

/// A quantized matrix, as fill() would write its rows.
QuantizedMatrix Loader::blocks(const Name& name, int64_t layer, int64_t rows, int64_t columns,
                               int64_t heads) {
  const StoredTensor& stored = take(name_of(name, layer), {rows, columns});
  const std::vector<int64_t> order = order_of(rows, heads);
  if (kind_ == QuantKind::Int8 || !quant_format(stored.type)) {
    at::Tensor elements = at::empty({rows, columns}, at::kFloat);
    convert_rows(stored, elements, order);
    expect_quantizable(stored, name_of(name, layer), elements);
    return quantize_matrix(elements);
  }
  const QuantizedMatrix matrix = read_quantized(stored.type, stored.bytes, rows, columns);
  forget_pages(stored.bytes);
  return order.empty() ? matrix : select_outputs(matrix, inverse_rows(order));
}

at::Tensor Loader::matrix(const Name& name, int64_t layer, int64_t rows, int64_t columns) {
  at::Tensor out = at::empty({rows, columns}, dtype_);
  fill(name, layer, out);
  return out.to(device_);
}

void Loader::load_matrices(int64_t index, LayerWeights& weights) {
  const ModelConfig& config = files_.config;
  const int64_t hidden = config.hidden_size, mlp = config.mlp_size;
  const int64_t queries = config.num_heads * config.head_size;
  const int64_t keys = config.num_kv_heads * config.head_size;
  weights.output = matrix(kOutput, index, hidden, queries);
  weights.down = matrix(kDown, index, hidden, mlp);
  if (architecture_.fused_matrices) {
    at::Tensor qkv = at::empty({queries + 2 * keys, hidden}, dtype_);
    fill(kQkv, index, qkv, config.num_heads + config.num_kv_heads);
    weights.qkv = qkv.to(device_);
    weights.gate_up = matrix(kGateUp, index, 2 * mlp, hidden);
    return;
  }
  at::Tensor qkv = at::empty({queries + 2 * keys, hidden}, dtype_);
  fill(kQuery, index, qkv.narrow(0, 0, queries), config.num_heads);
  fill(kKey, index, qkv.narrow(0, queries, keys), config.num_kv_heads);
  fill(kValue, index, qkv.narrow(0, queries + keys, keys));
  weights.qkv = qkv.to(device_);
  at::Tensor gate_up = at::empty({2 * mlp, hidden}, dtype_);
  fill(kGate, index, gate_up.narrow(0, 0, mlp));
  fill(kUp, index, gate_up.narrow(0, mlp, mlp));
  weights.gate_up = gate_up.to(device_);
}

void Loader::load_blocks(int64_t index, LayerQuantized& weights) {
  const ModelConfig& config = files_.config;
  const int64_t hidden = config.hidden_size, mlp = config.mlp_size;
  const int64_t queries = config.num_heads * config.head_size;
  const int64_t keys = config.num_kv_heads * config.head_size;
  weights.output = blocks(kOutput, index, hidden, queries);
  weights.down = blocks(kDown, index, hidden, mlp);
  if (architecture_.fused_matrices) {
    weights.qkv =
        blocks(kQkv, index, queries + 2 * keys, hidden, config.num_heads + config.num_kv_heads);
    weights.gate_up = blocks(kGateUp, index, 2 * mlp, hidden);
    return;
  }
  weights.qkv = stack_quantized({blocks(kQuery, index, queries, hidden, config.num_heads),
                                 blocks(kKey, index, keys, hidden, config.num_kv_heads),
                                 blocks(kValue, index, keys, hidden)});
  weights.gate_up =
      stack_quantized({blocks(kGate, index, mlp, hidden), blocks(kUp, index, mlp, hidden)});
}

LayerWeights Loader::layer(int64_t index) {
  const ModelConfig& config = files_.config;
  const int64_t queries = config.num_heads * config.head_size;
  const int64_t keys = config.num_kv_heads * config.head_size;
  LayerWeights weights;
  weights.attention_norm = vector(kAttentionNorm, index, config.hidden_size);
  weights.mlp_norm = vector(kMlpNorm, index, config.hidden_size);
  if (config.qkv_bias)
    weights.qkv_bias = at::cat({vector(kQueryBias, index, queries), vector(kKeyBias, index, keys),
                                vector(kValueBias, index, keys)});
  if (config.qk_norm) {
    weights.query_norm = vector(kQueryNorm, index, config.head_size);
    weights.key_norm = vector(kKeyNorm, index, config.head_size);
  }
  if (kind_ == QuantKind::None)
    load_matrices(index, weights);
  else
    load_blocks(index, weights.blocks);
  return weights;
}

/// A tied model may still carry a copy of the embedding as its output; it must then be equal.
at::Tensor Loader::lm_head(const at::Tensor& embedding) {
  const ModelConfig& config = files_.config;
  if (!config.tied_output) return matrix(kLmHead, 0, config.vocab_size, config.hidden_size);
  const std::string name = name_of(kLmHead, 0);
  if (!files_.tensors.contains(name)) return embedding;
  const StoredTensor& copy = take(name, embedding.sizes());
  const StoredTensor& original = files_.tensors.at(name_of(kEmbedding, 0));
  if (copy.type != original.type || copy.bytes.size() != original.bytes.size() ||
      std::memcmp(copy.bytes.data(), original.bytes.data(), copy.bytes.size()) != 0)
    throw UserError(
        fmt::format("{}: tensor '{}' differs from the embedding, but the model's "
                    "settings say that they are the same; set tie_word_embeddings to "
                    "false if it is meant to",
                    copy.file.string(), name));
  return embedding;
}

/// Old Hugging Face files carry the rotary frequencies, which follow from the settings: ignored.
/// GGUF's factors of a stretched rotary embedding were read with the settings. Medusa-2 models
/// carry heads among their tensors, which `medusa import` reads.
void Loader::check_nothing_left() {
  int64_t ignored = 0;
  for (const auto& [name, stored] : files_.tensors) {
    if (taken_.contains(name) || name == kGgufRopeFactors || name == kGgufShortFactors ||
        name == kGgufLongFactors)
      continue;
    if (name.starts_with("medusa_head.") || name.starts_with("medusa_heads.")) continue;
    if (!name.ends_with(".rotary_emb.inv_freq"))
      throw UserError(fmt::format(
          "{}: has a tensor '{}' of shape {}, which no part of a {} model uses; use "
          "weights and settings of the same model",
          stored.file.string(), name, shape_text(stored.shape), files_.config.architecture));
    ++ignored;
  }
  progress_.finish(ignored > 0 ? fmt::format("ignored {} rotary_emb.inv_freq", ignored) : "");
}

Weights Loader::non_layer() {
  const ModelConfig& config = files_.config;
  progress_.update(0);  // the whole file is read for its fingerprint, which takes a while
  Weights weights;
  weights.config = config;
  weights.fingerprint = fingerprint_model(files_);
  weights.embedding = matrix(kEmbedding, 0, config.vocab_size, config.hidden_size);
  weights.final_norm = vector(kFinalNorm, 0, config.hidden_size);
  weights.lm_head = lm_head(weights.embedding);
  weights.kind = kind_;
  if (kind_ != QuantKind::None)
    weights.lm_head_quantized =
        blocks(config.tied_output ? kEmbedding : kLmHead, 0, config.vocab_size, config.hidden_size);
  return weights;
}

}  // namespace

class WeightsReader::Impl {
 public:
  Impl(const fs::path& model, at::ScalarType dtype, at::Device device, QuantKind kind,
       ProgressFunction progress)
      : files(open_model_files(model)), loader(files, dtype, device, kind, std::move(progress)) {}

  const ModelFiles files;
  Loader loader;
  int64_t next = 0;  // layer
};

WeightsReader::WeightsReader(const fs::path& model, at::ScalarType dtype, at::Device device,
                             QuantKind kind, ProgressFunction progress) {
  MEDUSA_ASSERT(dtype == at::kFloat || dtype == at::kBFloat16, dtype);
  impl_ = std::make_unique<Impl>(model, dtype, device, kind, std::move(progress));
}

WeightsReader::~WeightsReader() = default;

const ModelConfig& WeightsReader::config() const { return impl_->files.config; }

Weights WeightsReader::non_layer() { return impl_->loader.non_layer(); }

LayerWeights WeightsReader::next_layer() {
  const int64_t count = impl_->files.config.num_layers;
  MEDUSA_ASSERT(impl_->next < count, impl_->next);
  LayerWeights layer = impl_->loader.layer(impl_->next++);
  if (impl_->next == count) impl_->loader.check_nothing_left();
  return layer;
}

Weights load_weights(const fs::path& model, at::ScalarType dtype, at::Device device, QuantKind kind,
                     ProgressFunction progress) {
  WeightsReader reader(model, dtype, device, kind, std::move(progress));
  Weights weights = reader.non_layer();
  for (int64_t i = 0; i < weights.config.num_layers; ++i)
    weights.layers.push_back(reader.next_layer());
  return weights;
}

bool stores_quantized(const fs::path& model) {
  const ModelFiles files = open_model_files(model);
  for (const auto& [name, stored] : files.tensors)
    if (stored.shape.size() == 2 && !quant_format(stored.type)) return false;
  return true;
}

Weights load_weights_without_layers(const fs::path& model, at::ScalarType dtype, at::Device device,
                                    ProgressFunction progress) {
  MEDUSA_ASSERT(dtype == at::kFloat || dtype == at::kBFloat16, dtype);
  const ModelFiles files = open_model_files(model);
  Loader loader(files, dtype, device, QuantKind::None, std::move(progress));
  Weights weights = loader.non_layer();
  loader.finish();
  return weights;
}

LayerWeights load_last_layer(const fs::path& model, at::Device device) {
  const ModelFiles files = open_model_files(model);
  return Loader(files, at::kFloat, device, QuantKind::None, {}).layer(files.config.num_layers - 1);
}

ModelConfig read_model_config(const fs::path& model) {
  return fs::is_directory(model) ? read_hf_config(model) : read_gguf_config(GgufFile(model));
}

}  // namespace medusa
