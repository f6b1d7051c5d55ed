#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "backbone/weights.h"
#include "base/file.h"
#include "base/formats/safetensors_file.h"
#include "tests/backbone/architecture_models.h"
#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

/// Works on copies of a small model of float32 numbers that only their names decide, which it
/// writes in both formats.
class LoadWeightsTest : public testing::Test {
 protected:
  LoadWeightsTest() {
    const json settings{{"architectures", {"LlamaForCausalLM"}},
                        {"model_type", "llama"},
                        {"hidden_size", 64},
                        {"intermediate_size", 172},
                        {"num_hidden_layers", 5},
                        {"num_attention_heads", 8},
                        {"num_key_value_heads", 4},
                        {"vocab_size", 512},
                        {"max_position_embeddings", 512},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 10000.0},
                        {"hidden_act", "silu"},
                        {"tie_word_embeddings", true},
                        {"eos_token_id", 1}};
    write_folder(kFolder, settings);
    gguf_model(read_hf_config(kFolder), settings).write(kGguf);
  }

  Weights load(const fs::path& path, at::ScalarType dtype = at::kFloat) const {
    return load_weights(path, dtype, at::kCPU);
  }

  /// Copies the GGUF file with a change; returns where it is.
  fs::path changed_gguf(const std::function<void(fixtures::GgufBuilder&)>& change) const {
    fixtures::GgufBuilder builder{GgufFile(kGguf)};
    change(builder);
    builder.write(folder_.path() / "a.gguf");
    return folder_.path() / "a.gguf";
  }

  using Entries = std::map<std::string, SafetensorsEntry>;

  /// Copies the folder with a change to its tensors and its config; returns where it is.
  fs::path changed_folder(const std::function<void(Entries&, json&)>& change) const {
    const SafetensorsFile file(kFolder / "model.safetensors");
    Entries entries;
    for (const auto& entry : file.entries()) entries[entry.name] = entry;
    json config = json::parse(read_file(kFolder / "config.json"));
    change(entries, config);
    write_entries("model.safetensors", entries);
    write_file(folder_.path() / "config.json", config.dump());
    return folder_.path();
  }

  void write_entries(const char* name, const Entries& entries) const {
    std::vector<SafetensorsEntry> list;
    for (const auto& [key, entry] : entries) {
      list.push_back(entry);
      list.back().name = key;
    }
    write_safetensors(folder_.path() / name, list, {});
  }

  std::string error(const fs::path& model) const {
    return fixtures::error_text(folder_, [&] { load(model); });
  }

  const fixtures::TempFolder model_;
  const fs::path kGguf = model_ / "model.gguf";
  const fs::path kFolder = model_ / "model";
  fixtures::TempFolder folder_;
};

/// Every tensor by a readable name.
std::map<std::string, at::Tensor> all_tensors(const Weights& weights) {
  std::map<std::string, at::Tensor> all{{"embedding", weights.embedding},
                                        {"final_norm", weights.final_norm},
                                        {"lm_head", weights.lm_head}};
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    const std::string prefix = std::to_string(i) + ".";
    all[prefix + "attention_norm"] = layer.attention_norm;
    all[prefix + "qkv"] = layer.qkv;
    all[prefix + "output"] = layer.output;
    all[prefix + "mlp_norm"] = layer.mlp_norm;
    all[prefix + "gate_up"] = layer.gate_up;
    all[prefix + "down"] = layer.down;
  }
  return all;
}

void expect_same_bits(const Weights& a, const Weights& b) {
  const auto tensors = all_tensors(a), others = all_tensors(b);
  ASSERT_EQ(tensors.size(), others.size());
  for (const auto& [name, tensor] : tensors)
    EXPECT_TRUE(at::equal(tensor, others.at(name))) << name;
}

TEST_F(LoadWeightsTest, GgufAndHuggingFaceFolderGiveTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Weights gguf = load(kGguf, dtype), folder = load(kFolder, dtype);
    ASSERT_EQ(gguf.layers.size(), 5u);
    expect_same_bits(gguf, folder);
    EXPECT_EQ(gguf.config.eos, folder.config.eos);
    EXPECT_EQ(gguf.config.context, folder.config.context);
    EXPECT_EQ(gguf.config.rope_base, folder.config.rope_base);
    EXPECT_EQ(static_cast<float>(gguf.config.norm_epsilon),
              static_cast<float>(folder.config.norm_epsilon));
  }
}

TEST_F(LoadWeightsTest, ASplitGgufGivesTheSameBits) {
  fixtures::GgufBuilder parts[2] = {fixtures::GgufBuilder(GgufFile(kGguf)),
                                    fixtures::GgufBuilder()};
  const GgufFile whole(kGguf);
  for (size_t i = 0; i < whole.tensors().size(); i += 2) {  // every second one goes to the other
    const GgufTensor& tensor = whole.tensors()[i];
    const auto data = whole.data(tensor);
    parts[0].drop(tensor.name);
    parts[1].tensor(tensor.name, tensor.dims, tensor.type,
                    {reinterpret_cast<const char*>(data.data()), data.size()});
  }
  for (uint32_t i = 0; i < 2; ++i) {
    parts[i].set("split.no", i).set("split.count", 2U);
    parts[i].write(folder_ / (i == 0 ? "a-00001-of-00002.gguf" : "a-00002-of-00002.gguf"));
  }
  const Weights split = load(folder_ / "a-00001-of-00002.gguf"), expected = load(kGguf);
  expect_same_bits(split, expected);
  EXPECT_EQ(split.config.tied_output, expected.config.tied_output);
  EXPECT_EQ(split.config.vocab_size, expected.config.vocab_size);
  // It is said to be another one when any part is.
  parts[1].set("split.note", "x").write(folder_ / "a-00002-of-00002.gguf");
  EXPECT_NE(load(folder_ / "a-00001-of-00002.gguf").fingerprint, split.fingerprint);
}

TEST_F(LoadWeightsTest, FusesTheRowsInTheDocumentedOrder) {
  const Weights weights = load(kFolder);
  const SafetensorsFile file(kFolder / "model.safetensors");
  const auto stored = [&](const std::string& name) {
    const SafetensorsEntry& entry = *file.find("model.layers.1." + name + ".weight");
    at::Tensor tensor = at::empty(entry.shape, at::kFloat);
    std::memcpy(tensor.data_ptr(), entry.bytes.data(), entry.bytes.size());
    return tensor;
  };
  const LayerWeights& layer = weights.layers[1];
  EXPECT_TRUE(at::equal(layer.qkv, at::cat({stored("self_attn.q_proj"), stored("self_attn.k_proj"),
                                            stored("self_attn.v_proj")})));
  EXPECT_TRUE(at::equal(layer.gate_up, at::cat({stored("mlp.gate_proj"), stored("mlp.up_proj")})));
  EXPECT_TRUE(at::equal(layer.output, stored("self_attn.o_proj")));
  EXPECT_TRUE(at::equal(layer.down, stored("mlp.down_proj")));
  EXPECT_TRUE(at::equal(layer.attention_norm, stored("input_layernorm")));
  EXPECT_TRUE(at::equal(layer.mlp_norm, stored("post_attention_layernorm")));
}

TEST_F(LoadWeightsTest, BlocksHoldTheSameNumbersInTheSameOrderWithinALevel) {
  const Weights exact = load(kFolder);
  for (const fs::path& model : {kGguf, kFolder})
    for (const QuantKind kind : {QuantKind::Int8, QuantKind::Stored}) {
      const Weights weights = load_weights(model, at::kBFloat16, at::kCPU, kind);
      EXPECT_EQ(weights.kind, kind);
      const LayerWeights& layer = weights.layers[1];
      EXPECT_FALSE(layer.qkv.defined());
      const auto expect_near = [](const QuantizedMatrix& blocks, const at::Tensor& elements) {
        const at::Tensor error = (dequantize_matrix(blocks) - elements.to(at::kFloat)).abs();
        EXPECT_LT(error.max().item<float>(), 0.01F * elements.abs().max().item<float>());
      };
      expect_near(layer.blocks.qkv, exact.layers[1].qkv);
      expect_near(layer.blocks.output, exact.layers[1].output);
      expect_near(layer.blocks.gate_up, exact.layers[1].gate_up);
      expect_near(layer.blocks.down, exact.layers[1].down);
      expect_near(weights.lm_head_quantized, exact.lm_head);
    }
  EXPECT_FALSE(stores_quantized(kGguf));  // it stores plain numbers
}

/// The same numbers in Q8_0, GGUF's plain blocks of 8 bits.
void store_quantized(fixtures::GgufBuilder& builder, const std::string& name) {
  auto& tensor = builder.tensor(name);
  std::vector<float> elements(tensor.bytes.size() / sizeof(float));
  std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  std::string bytes;
  for (size_t begin = 0; begin < elements.size(); begin += 32) {
    float largest = 0;
    for (size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::abs(elements[i]));
    const c10::Half scale(largest / 127);
    bytes.append(reinterpret_cast<const char*>(&scale), 2);
    for (size_t i = begin; i < begin + 32; ++i)
      bytes += static_cast<char>(std::lround(elements[i] / static_cast<float>(scale)));
  }
  tensor.type = GgmlType::Q8_0;
  tensor.bytes = bytes;
}

/// The rows of Q and K are turned back in blocks as in plain numbers, and an own LM head is taken.
TEST_F(LoadWeightsTest, StoredBlocksAreTheFilesOwnNumbersInTheSameRows) {
  const fs::path model = changed_gguf([](fixtures::GgufBuilder& builder) {
    const auto embedding = builder.tensor("token_embd.weight");
    builder.tensor("output.weight", embedding.dims, embedding.type, embedding.bytes);
    builder.tensor("output.weight").bytes[3] ^= '\x80';  // the sign of its first number
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up"})
      store_quantized(builder, fmt::format("blk.1.{}.weight", name));
    store_quantized(builder, "output.weight");
  });
  const Weights exact = load(model);
  const Weights stored = load_weights(model, at::kFloat, at::kCPU, QuantKind::Stored);
  const LayerQuantized& blocks = stored.layers[1].blocks;
  EXPECT_TRUE(at::equal(dequantize_matrix(blocks.qkv), exact.layers[1].qkv));
  EXPECT_TRUE(at::equal(dequantize_matrix(blocks.output), exact.layers[1].output));
  EXPECT_TRUE(at::equal(dequantize_matrix(blocks.gate_up), exact.layers[1].gate_up));
  EXPECT_TRUE(at::equal(dequantize_matrix(stored.lm_head_quantized), exact.lm_head));
}

TEST_F(LoadWeightsTest, Bfloat16RoundsToNearestEvenAndKeepsNormsInFloat32) {
  const Weights exact = load(kFolder), rounded = load(kFolder, at::kBFloat16);
  EXPECT_EQ(rounded.layers[0].qkv.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(rounded.layers[0].qkv, exact.layers[0].qkv.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(rounded.embedding, exact.embedding.to(at::kBFloat16)));
  EXPECT_EQ(rounded.final_norm.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(rounded.layers[3].mlp_norm, exact.layers[3].mlp_norm));
}

TEST_F(LoadWeightsTest, TiedOutputIsTheEmbeddingItself) {
  const Weights tied = load(kGguf);
  EXPECT_TRUE(tied.lm_head.is_same(tied.embedding));

  const Weights own = load(changed_gguf([](fixtures::GgufBuilder& builder) {
    auto output = builder.tensor("token_embd.weight");
    output.bytes[2] ^= 1;
    builder.tensor("output.weight", output.dims, output.type, output.bytes);
  }));
  EXPECT_FALSE(own.config.tied_output);
  EXPECT_FALSE(at::equal(own.lm_head, own.embedding));
}

TEST_F(LoadWeightsTest, FingerprintFollowsTheContentNotTheName) {
  const std::string original = load(kGguf).fingerprint;
  EXPECT_EQ(original.substr(0, 7), "sha256:");
  fs::copy_file(kGguf, folder_.path() / "other.gguf");
  EXPECT_EQ(load(folder_.path() / "other.gguf").fingerprint, original);
  const fs::path changed = changed_gguf(
      [](fixtures::GgufBuilder& builder) { builder.tensor("blk.0.attn_q.weight").bytes[0] ^= 1; });
  EXPECT_NE(load(changed).fingerprint, original);

  const std::string plain = load(changed_folder([](Entries&, json&) {})).fingerprint;
  EXPECT_EQ(load(folder_.path()).fingerprint, plain);
  const fs::path config =
      changed_folder([](Entries&, json& settings) { settings["rope_theta"] = 20000; });
  EXPECT_NE(load(config).fingerprint, plain);
}

TEST_F(LoadWeightsTest, ReadsAModelInSeveralFiles) {
  const SafetensorsFile file(kFolder / "model.safetensors");
  Entries parts[2];
  json map;
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const SafetensorsEntry& entry = file.entries()[i];
    parts[i % 2][entry.name] = entry;
    map[entry.name] = i % 2 == 0 ? "model-1.safetensors" : "model-2.safetensors";
  }
  write_entries("model-1.safetensors", parts[0]);
  write_entries("model-2.safetensors", parts[1]);
  fs::copy_file(kFolder / "config.json", folder_.path() / "config.json");
  const Weights whole = load(kFolder);
  expect_same_bits(load(folder_.path()), whole);  // found by their extension

  const fs::path index = folder_.path() / "model.safetensors.index.json";
  write_file(index, json{{"weight_map", map}}.dump());
  write_file(folder_.path() / "not-of-the-index.safetensors", "foreign");
  expect_same_bits(load(folder_.path()), whole);

  map["model.norm.weight"] = "model-1.safetensors";
  map["model.embed_tokens.weight"] = "model-2.safetensors";
  write_file(index, json{{"weight_map", map}}.dump());
  EXPECT_EQ(error(folder_.path()),
            "<>/model-2.safetensors: has no tensor 'model.embed_tokens.weight', expected it there "
            "as model.safetensors.index.json says; copy or download the file again");
  map["model.norm.weight"] = "../model-1.safetensors";
  write_file(index, json{{"weight_map", map}}.dump());
  EXPECT_EQ(error(folder_.path()),
            "<>/model.safetensors.index.json: places tensor 'model.norm.weight' in "
            "'../model-1.safetensors', expected a file of the same folder; copy or download the "
            "file again");
  write_file(folder_.path() / "model.safetensors", "another model");
  map["model.norm.weight"] = "model-1.safetensors";
  write_file(index, json{{"weight_map", map}}.dump());
  EXPECT_EQ(error(folder_.path()),
            "<>/model.safetensors: lies beside model.safetensors.index.json, which does not name "
            "it, expected one model; remove the one that does not belong there");
  fs::remove(folder_.path() / "model.safetensors");
  write_file(index, "[]");
  EXPECT_EQ(error(folder_.path()),
            "<>/model.safetensors.index.json: has no usable 'weight_map', expected an object of "
            "tensor names and file names; copy or download the file again");
}

TEST_F(LoadWeightsTest, RejectsATensorThatIsMissing) {
  const std::string remedy = "; copy or download the model again, or use another";
  EXPECT_EQ(
      error(changed_gguf([](fixtures::GgufBuilder& b) { b.drop("blk.2.ffn_up.weight"); })),
      "<>/a.gguf: has no tensor 'blk.2.ffn_up.weight', expected one of shape [172, 64]" + remedy);
  EXPECT_EQ(error(changed_folder([](Entries& e, json&) { e.erase("model.norm.weight"); })),
            "<>: has no tensor 'model.norm.weight', expected one of shape [64]" + remedy);
  EXPECT_EQ(
      error(changed_folder([](Entries&, json& config) { config["tie_word_embeddings"] = false; })),
      "<>: has no tensor 'lm_head.weight', expected one of shape [512, 64]" + remedy);
}

TEST_F(LoadWeightsTest, RejectsATensorThatIsLeftOver) {
  EXPECT_EQ(error(changed_gguf([](fixtures::GgufBuilder& b) {
              b.tensor("blk.0.attn_q.bias", {64}, GgmlType::F32, std::string(256, '\0'));
            })),
            "<>/a.gguf: has a tensor 'blk.0.attn_q.bias' of shape [64], which no part of a llama "
            "model uses; use weights and settings of the same model");
  EXPECT_EQ(error(changed_folder([](Entries&, json& config) { config["num_hidden_layers"] = 4; })),
            "<>/model.safetensors: has a tensor 'model.layers.4.input_layernorm.weight' of shape "
            "[64], which no part of a llama model uses; use weights and settings of the same "
            "model");
}

TEST_F(LoadWeightsTest, RejectsAnotherShapeAndShowsBoth) {
  EXPECT_EQ(error(changed_gguf([](fixtures::GgufBuilder& b) {
              b.tensor("blk.1.attn_k.weight").dims = {32, 64};
            })),
            "<>/a.gguf: tensor 'blk.1.attn_k.weight' has shape [64, 32], expected [32, 64] by the "
            "model's settings; use weights and settings of the same model");
  EXPECT_EQ(error(changed_folder([](Entries&, json& config) { config["vocab_size"] = 513; })),
            "<>/model.safetensors: tensor 'model.embed_tokens.weight' has shape [512, 64], "
            "expected [513, 64] by the model's settings; use weights and settings of the same "
            "model");
}

TEST_F(LoadWeightsTest, RejectsNumbersItCannotRead) {
  EXPECT_EQ(error(changed_gguf([](fixtures::GgufBuilder& b) {
              b.tensor("blk.0.ffn_norm.weight").type = GgmlType::I32;
            })),
            "<>/a.gguf: tensor 'blk.0.ffn_norm.weight' is I32, expected F32, F16, BF16, Q4_0, "
            "Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL or IQ4_XS; use a file with one of these "
            "quantisations");
  EXPECT_EQ(error(changed_folder([](Entries& e, json&) { e["model.norm.weight"].dtype = "I32"; })),
            "<>/model.safetensors: tensor 'model.norm.weight' is I32, expected F32, F16, BF16 or "
            "F8_E4M3; "
            "use a model saved in one of these types");
}

TEST_F(LoadWeightsTest, IgnoresStoredRotaryFrequencies) {
  const std::vector<uint8_t> bytes(16);
  const fs::path folder = changed_folder([&](Entries& e, json&) {
    e["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"", "F32", {4}, bytes};
  });
  expect_same_bits(load(folder), load(kFolder));
}

TEST_F(LoadWeightsTest, AcceptsACopyOfATiedOutputOnlyIfItIsEqual) {
  const auto with_copy = [&](std::vector<uint8_t>& bytes, bool damage) {
    return changed_folder([&](Entries& e, json&) {
      const SafetensorsEntry& embedding = e["model.embed_tokens.weight"];
      bytes.assign(embedding.bytes.begin(), embedding.bytes.end());
      if (damage) bytes[100] ^= 1;
      e["lm_head.weight"] = {"", "F32", embedding.shape, bytes};
    });
  };
  std::vector<uint8_t> bytes;
  const Weights same = load(with_copy(bytes, false));
  EXPECT_TRUE(same.lm_head.is_same(same.embedding));
  EXPECT_EQ(error(with_copy(bytes, true)),
            "<>/model.safetensors: tensor 'lm_head.weight' differs from the embedding, but the "
            "model's settings say that they are the same; set tie_word_embeddings to false if it "
            "is meant to");
}

TEST_F(LoadWeightsTest, RejectsEightBitsOfNumbersThatAreAllTiny) {
  const auto with_largest = [&](float largest) {
    std::vector<uint8_t> bytes;
    return changed_folder([&](Entries& e, json&) {
      SafetensorsEntry& entry = e["model.layers.1.mlp.down_proj.weight"];
      std::vector<float> numbers(entry.bytes.size() / sizeof(float), largest / 3);
      numbers[7] = -largest;
      bytes.resize(entry.bytes.size());
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
      entry.bytes = bytes;
    });
  };
  const auto as_int8 = [&](float largest) {
    const fs::path model = with_largest(largest);
    return fixtures::error_text(
        folder_, [&] { load_weights(model, at::kBFloat16, at::kCPU, QuantKind::Int8); });
  };
  EXPECT_EQ(as_int8(1e-6F),
            "<>/model.safetensors: tensor 'model.layers.1.mlp.down_proj.weight' has no number "
            "above 1e-06, expected one of at least 0.000121, as 8-bit blocks keep a half-precision "
            "scale for 32 numbers; load it with --dtype bfloat16");
  EXPECT_EQ(as_int8(2e-4F), "(no error)");
  EXPECT_EQ(as_int8(0), "(no error)") << "zeros are zeros";
}

TEST_F(LoadWeightsTest, RejectsWhatIsNoModel) {
  fs::copy_file(kFolder / "config.json", folder_.path() / "config.json");
  EXPECT_EQ(error(folder_.path()),
            "<>: holds no .safetensors file, expected the model's weights; download them in this "
            "format");
  EXPECT_EQ(error(folder_.path() / "none.gguf"), "<>/none.gguf: no such file; check the path");
  const std::string whole = read_file(kGguf);
  write_file(folder_.path() / "cut.gguf", whole.substr(0, whole.size() / 2));
  const std::string cut = error(folder_.path() / "cut.gguf");
  EXPECT_TRUE(cut.starts_with("<>/cut.gguf: ")) << cut;
}

TEST_F(LoadWeightsTest, SettingsAloneAreTheSame) {
  for (const fs::path& path : {kGguf, kFolder}) {
    const ModelConfig config = read_model_config(path);
    EXPECT_EQ(config.num_layers, 5);
    EXPECT_EQ(config.hidden_size, 64);
    EXPECT_EQ(config.num_heads, 8);
    EXPECT_EQ(config.num_kv_heads, 4);
    EXPECT_EQ(config.head_size, 8);
    EXPECT_EQ(config.mlp_size, 172);
    EXPECT_EQ(config.vocab_size, 512);
    EXPECT_TRUE(config.tied_output);
  }
}

}  // namespace
}  // namespace medusa
