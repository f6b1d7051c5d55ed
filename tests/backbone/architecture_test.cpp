// A tiny model of every architecture against transformers, read from a Hugging Face folder and from
// a GGUF file. The golden numbers were made by tools/dev/make_architecture_golden.py.
#include "backbone/architecture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "backbone/llama.h"
#include "backbone/safetensors.h"
#include "base/file.h"
#include "tests/backbone/seeded_fill.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kTolerance = 1e-4;

json read_golden() {
  return json::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/architectures.json"));
}

bool is_model(const json& entry) { return entry.is_object() && entry.contains("config"); }

fs::path write_folder(const fs::path& folder, const json& config) {
  fs::create_directories(folder);
  write_file(folder / "config.json", config.dump());
  write_tensors(folder / "model.safetensors", seeded_parameters(read_hf_config(folder)), {});
  return folder;
}

/// [T, V] float32
at::Tensor logits_of(const Weights& weights, const std::vector<TokenId>& tokens) {
  const c10::InferenceMode no_grad;
  Llama llama(weights, Kernels::Plain);
  KvCache cache = llama.make_cache(1, static_cast<int64_t>(tokens.size()));
  const Segment all{cache.open(), tokens, {}};
  return llama.logits(llama.forward({&all, 1}, cache)).to(at::kFloat);
}

void expect_golden(const json& entry, const at::Tensor& logits) {
  const auto sums = entry.at("logsumexp").get<std::vector<double>>();
  const auto first = entry.at("first_logits").get<std::vector<std::vector<double>>>();
  ASSERT_EQ(logits.size(0), static_cast<int64_t>(sums.size()));
  const at::Tensor found = logits.to(at::kDouble).logsumexp({-1});
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(found[static_cast<int64_t>(i)].item<double>(), sums[i], kTolerance) << i;
    for (size_t j = 0; j < first[i].size(); ++j)
      EXPECT_NEAR(logits[static_cast<int64_t>(i)][static_cast<int64_t>(j)].item<double>(),
                  first[i][j], kTolerance)
          << i << " " << j;
  }
}

TEST(Architecture, EveryOneAgreesWithTransformers) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  std::set<std::string_view> seen;
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry)) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const Weights weights = load_weights(model, at::kFloat, at::kCPU);
    expect_golden(entry, logits_of(weights, tokens));
    seen.insert(find_architecture(weights.config.architecture)->name);
  }
  for (const Architecture& architecture : architectures())
    EXPECT_TRUE(seen.contains(architecture.name)) << architecture.name << " is not compared";
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

/// Rows of Q or K as a Llama's GGUF orders them: dimensions i and i + D/2 of a head side by side.
at::Tensor turn_neighbours(const at::Tensor& rows, int64_t head_size) {
  return rows.view({-1, 2, head_size / 2, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

/// What stretches the rotary embedding, as llama.cpp's converter writes it.
void add_rope(fixtures::GgufBuilder& builder, const ModelConfig& config, const json& settings) {
  const json rope = settings.value("rope_scaling", json::object());
  const std::string prefix = config.architecture + ".rope.scaling.";
  const auto factors = [&](const char* name, const std::vector<double>& values) {
    const at::Tensor tensor = at::tensor(values, at::kFloat);
    builder.tensor(name, {tensor.numel()}, GgmlType::F32, bytes_of(tensor));
  };
  const auto set_original = [&](const json& where) {
    builder.set(prefix + "original_context_length",
                where.at("original_max_position_embeddings").get<uint32_t>());
  };
  if (rope.value("rope_type", "") == "yarn") {
    builder.set(prefix + "type", "yarn");
    builder.set(prefix + "factor", rope.at("factor").get<float>());
    set_original(rope);
  } else if (rope.contains("short_factor")) {
    factors(kGgufShortFactors, rope.at("short_factor").get<std::vector<double>>());
    factors(kGgufLongFactors, rope.at("long_factor").get<std::vector<double>>());
    set_original(settings);
    builder.set(prefix + "attn_factor", static_cast<float>(config.rope_attention));
  } else if (!config.rope_factors.empty()) {
    factors(kGgufRopeFactors, config.rope_factors);
  }
}

/// The same model as a GGUF file.
/// @param settings  of its config.json.
fs::path write_gguf(const fs::path& path, const ModelConfig& config, const json& settings) {
  const Architecture& architecture = *find_architecture(config.architecture);
  const std::string prefix = config.architecture + ".";
  fixtures::GgufBuilder builder;
  builder.set("general.architecture", config.architecture.c_str());
  const auto set = [&](const char* key, int64_t value) {
    builder.set(prefix + key, static_cast<uint32_t>(value));
  };
  set("block_count", config.num_layers);
  set("embedding_length", config.hidden_size);
  set("attention.head_count", config.num_heads);
  set("attention.head_count_kv", config.num_kv_heads);
  set("attention.key_length", config.head_size);
  set("attention.value_length", config.head_size);
  set("feed_forward_length", config.mlp_size);
  set("context_length", settings.at("max_position_embeddings"));
  if (config.architecture == "phi3")
    set("attention.sliding_window", config.windows.empty() ? 0 : config.window(0));
  builder.set(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(config.norm_epsilon));
  builder.set(prefix + "rope.freq_base", static_cast<float>(config.rope_base));
  builder.set("tokenizer.ggml.eos_token_id", 1u);
  const std::pair<const char*, const char*> names[] = {{"model.embed_tokens", "token_embd"},
                                                       {"model.norm", "output_norm"},
                                                       {"lm_head", "output"},
                                                       {"model.layers.", "blk."},
                                                       {"input_layernorm", "attn_norm"},
                                                       {"self_attn.qkv_proj", "attn_qkv"},
                                                       {"self_attn.q_norm", "attn_q_norm"},
                                                       {"self_attn.k_norm", "attn_k_norm"},
                                                       {"self_attn.q_proj", "attn_q"},
                                                       {"self_attn.k_proj", "attn_k"},
                                                       {"self_attn.v_proj", "attn_v"},
                                                       {"self_attn.o_proj", "attn_output"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"mlp.gate_up_proj", "ffn_up"},
                                                       {"mlp.gate_proj", "ffn_gate"},
                                                       {"mlp.up_proj", "ffn_up"},
                                                       {"mlp.down_proj", "ffn_down"}};
  for (const auto& [full_name, parameter] : seeded_parameters(config)) {
    std::string name = full_name;
    at::Tensor tensor = parameter;
    const bool turned = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
    if (turned && architecture.gguf_turns_neighbours)
      tensor = turn_neighbours(tensor, config.head_size);
    for (const auto& [from, to] : names)
      if (const size_t at = name.find(from); at != std::string::npos)
        name.replace(at, std::string(from).size(), to);
    builder.tensor(name, {tensor.sizes().rbegin(), tensor.sizes().rend()}, GgmlType::F32,
                   bytes_of(tensor));
  }
  add_rope(builder, config, settings);
  builder.write(path);
  return path;
}

TEST(Architecture, GgufFilesGiveTheSameLogits) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry) || !entry.at("in_gguf").get<bool>()) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const ModelConfig config = read_hf_config(model);
    if (!find_architecture(config.architecture)->in_gguf) continue;
    const fs::path gguf = write_gguf(folder.path() / "a.gguf", config, entry.at("config"));
    const Weights weights = load_weights(gguf, at::kFloat, at::kCPU);
    EXPECT_EQ(weights.config.qkv_bias, config.qkv_bias);
    EXPECT_EQ(weights.config.rope_factors.size(), config.rope_factors.size());
    EXPECT_EQ(weights.config.context, config.context);
    EXPECT_EQ(weights.config.no_rope, config.no_rope);
    EXPECT_EQ(weights.config.windows, config.windows);
    expect_golden(entry, logits_of(weights, tokens));
  }
}

TEST(Architecture, BlocksOfEightBitsAgreeWithinTheirRounding) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry)) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const at::Tensor exact = logits_of(load_weights(model, at::kFloat, at::kCPU), tokens);
    const at::Tensor rounded =
        logits_of(load_weights(model, at::kFloat, at::kCPU, BlockKind::Int8), tokens);
    EXPECT_LT((rounded - exact).norm().item<double>(), 0.05 * exact.norm().item<double>());
  }
}

}  // namespace
}  // namespace medusa
