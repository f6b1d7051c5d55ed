#include "backbone/files/dequantize.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backbone/files/safetensors.h"
#include "backbone/weights.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "tests/backbone/seeded_fill.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

std::vector<float> decode(GgmlType type, const std::vector<uint8_t>& blocks) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  std::vector<float> out(blocks.size() / static_cast<size_t>(info.block_bytes) *
                         static_cast<size_t>(info.block_size));
  dequantize(type, blocks, out);
  return out;
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Half-precision 0.5 is 0x3800, 2.0 is 0x4000, -1.0 is 0xbc00; stored low byte first.

TEST(Dequantize, Q4_0IsScaleTimesNumberLessEight) {
  std::vector<uint8_t> block(18, 0x88);
  block[0] = 0x00, block[1] = 0x38;  // 0.5
  block[2] = 0xf0;                   // number 0: 0, number 16: 15
  std::vector<float> expected(32, 0.0f);
  expected[0] = -4.0f;
  expected[16] = 3.5f;
  EXPECT_EQ(decode(GgmlType::Q4_0, block), expected);
}

TEST(Dequantize, Q4_1IsScaleTimesNumberPlusMinimum) {
  std::vector<uint8_t> block(20, 0x00);
  block[1] = 0x40;                   // 2.0
  block[2] = 0x00, block[3] = 0xbc;  // -1.0
  block[4 + 15] = 0x3a;              // number 15: 10, number 31: 3
  std::vector<float> expected(32, -1.0f);
  expected[15] = 19.0f;
  expected[31] = 5.0f;
  EXPECT_EQ(decode(GgmlType::Q4_1, block), expected);
}

TEST(Dequantize, Q5_0TakesTheFifthBitFromTheWord) {
  std::vector<uint8_t> block(22, 0x00);
  block[1] = 0x38;                   // 0.5
  block[2] = 0x02, block[5] = 0x80;  // high bits of numbers 1 and 31
  block[6 + 1] = 0x05;               // number 1: 16 + 5
  block[6 + 15] = 0xf0;              // number 31: 16 + 15
  std::vector<float> expected(32, -8.0f);
  expected[1] = 2.5f;
  expected[31] = 7.5f;
  EXPECT_EQ(decode(GgmlType::Q5_0, block), expected);
}

TEST(Dequantize, Q5_1AddsTheMinimum) {
  std::vector<uint8_t> block(24, 0x00);
  block[1] = 0x40;                   // 2.0
  block[2] = 0x00, block[3] = 0xbc;  // -1.0
  block[6] = 0x01;                   // high bit of number 16
  block[8] = 0x73;                   // number 0: 3, number 16: 16 + 7
  std::vector<float> expected(32, -1.0f);
  expected[0] = 5.0f;
  expected[16] = 45.0f;
  EXPECT_EQ(decode(GgmlType::Q5_1, block), expected);
}

TEST(Dequantize, Q8_0IsScaleTimesSignedByte) {
  std::vector<uint8_t> block(34, 0x00);
  block[1] = 0x38;  // 0.5
  block[2] = 0x80;  // -128
  block[33] = 0x7f;
  std::vector<float> expected(32, 0.0f);
  expected[0] = -64.0f;
  expected[31] = 63.5f;
  EXPECT_EQ(decode(GgmlType::Q8_0, block), expected);
}

TEST(Dequantize, AgreesBitForBitWithTheGgufPackage) {
  const auto golden =
      nlohmann::json::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/dequantise.json"));
  for (const GgmlType type :
       {GgmlType::F32, GgmlType::F16, GgmlType::BF16, GgmlType::Q4_0, GgmlType::Q4_1,
        GgmlType::Q5_0, GgmlType::Q5_1, GgmlType::Q8_0, GgmlType::Q2_K, GgmlType::Q3_K,
        GgmlType::Q4_K, GgmlType::Q5_K, GgmlType::Q6_K, GgmlType::IQ4_NL, GgmlType::IQ4_XS}) {
    const std::string name(ggml_type_info(type).name);
    SCOPED_TRACE(name);
    const auto& expected = golden.at(name);
    const auto elements = decode(type, from_hex(expected.at("blocks")));
    const std::string bits(reinterpret_cast<const char*>(elements.data()),
                           elements.size() * sizeof(float));
    if (expected.contains("sha256")) {
      EXPECT_EQ(fingerprint_text(bits), "sha256:" + expected.at("sha256").get<std::string>());
    } else {
      const auto wanted = from_hex(expected.at("numbers"));
      EXPECT_EQ(bits, std::string(wanted.begin(), wanted.end()));
    }
  }
}

TEST(Dequantize, Q4_KHasAScaleAndAMinimumForEach32) {
  std::vector<uint8_t> block(144, 0x00);
  block[1] = 0x38;            // scale 0.5
  block[3] = 0x40;            // minimum 2.0
  block[4 + 1] = 3;           // scale of numbers 32 to 63
  block[4 + 5] = 1;           // their minimum
  block[4 + 3] = 2 << 6;      // two highest bits of the scale of numbers 224 to 255: 32
  block[4 + 11] = 5;          // and its four lowest
  block[16 + 31] = 0x70;      // number 31: 0, number 63: 7
  block[16 + 96 + 2] = 0x10;  // number 226: 1
  std::vector<float> expected(256, 0.0f);
  for (size_t i = 32; i < 64; ++i) expected[i] = -2.0f;
  expected[63] = 0.5f * 3 * 7 - 2.0f;
  expected[226] = 0.5f * 37;
  EXPECT_EQ(decode(GgmlType::Q4_K, block), expected);
}

TEST(Dequantize, KnowsWhatItCannotDo) {
  EXPECT_TRUE(can_dequantize(GgmlType::Q4_1));
  EXPECT_FALSE(can_dequantize(GgmlType::IQ2_XXS));
  EXPECT_FALSE(can_dequantize(GgmlType::F64));
  std::vector<float> out(31);
  EXPECT_THROW(dequantize(GgmlType::Q8_0, std::vector<uint8_t>(34), out), std::logic_error);
}

namespace fs = std::filesystem;
using nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

TEST(Fp8, EveryCodeIsLibTorchsNumber) {
  at::Tensor codes = at::empty({256}, at::kByte);
  for (int i = 0; i < 256; ++i) codes[i] = i;
  const at::Tensor expected = codes.view(at::kFloat8_e4m3fn).to(at::kFloat);
  at::Tensor found = at::empty({256}, at::kFloat);
  decode_fp8_row({}, 0, {codes.data_ptr<uint8_t>(), 256}, {found.data_ptr<float>(), 256});
  EXPECT_TRUE(at::equal(found.nan_to_num(), expected.nan_to_num()));
  EXPECT_TRUE(at::equal(found.isnan(), expected.isnan()));
  EXPECT_EQ(found.isnan().sum().item<int64_t>(), 2);
}

/// Sizes that are no multiples of a block.
const json kFp8Config = {{"architectures", {"LlamaForCausalLM"}},
                         {"model_type", "llama"},
                         {"hidden_size", 160},
                         {"intermediate_size", 300},
                         {"num_hidden_layers", 1},
                         {"num_attention_heads", 5},
                         {"vocab_size", 40},
                         {"max_position_embeddings", 64},
                         {"rms_norm_eps", 1e-5},
                         {"tie_word_embeddings", true},
                         {"hidden_act", "silu"}};

class Fp8Model : public testing::Test {
 protected:
  Fp8Model() { write_file(folder_ / "config.json", kFp8Config.dump()); }

  Weights load(const Tensors& tensors) const {
    write_tensors(folder_ / "model.safetensors", tensors, {});
    return load_weights(folder_.path(), at::kFloat, at::kCPU);
  }
  std::string error(const Tensors& tensors) const {
    return fixtures::error_text(folder_, [&] { load(tensors); });
  }

  fixtures::TempFolder folder_;
};

/// Each number's own scale from those of its block.
at::Tensor spread(const at::Tensor& scales, const at::Tensor& matrix) {
  return scales.to(at::kFloat)
      .repeat_interleave(kFp8Block, 0)
      .repeat_interleave(kFp8Block, 1)
      .narrow(0, 0, matrix.size(0))
      .narrow(1, 0, matrix.size(1));
}

TEST_F(Fp8Model, AMatrixIsReadWithTheScalesOfItsBlocks) {
  for (const at::ScalarType scale_type : {at::kFloat, at::kBFloat16}) {
    Tensors stored = seeded_parameters(read_hf_config(folder_.path())), plain = stored;
    uint64_t seed = 1;
    for (auto& [name, tensor] : plain) {
      if (tensor.dim() != 2 || name.find("embed") != std::string::npos) continue;
      at::Tensor scales = at::empty({(tensor.size(0) + 127) / 128, (tensor.size(1) + 127) / 128});
      for (int64_t i = 0; i < scales.numel(); ++i)
        scales.data_ptr<float>()[i] = 0.5F + static_cast<float>(++seed % 7);
      stored[name] = tensor.to(at::kFloat8_e4m3fn);
      stored[name + "_scale_inv"] = scales.to(scale_type);
      tensor = stored[name].to(at::kFloat) * spread(scales.to(scale_type), tensor);
    }
    const Weights found = load(stored), expected = load(plain);
    for (const auto& [name, part] : kLayerParts) {
      const at::Tensor& tensor = expected.layers[0].*part;
      if (tensor.defined()) {
        EXPECT_TRUE(at::equal(found.layers[0].*part, tensor)) << name;
      }
    }
  }
}

TEST_F(Fp8Model, AMatrixWithoutScalesIsItsElements) {
  Tensors stored = seeded_parameters(read_hf_config(folder_.path()));
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  stored[name] = stored[name].to(at::kFloat8_e4m3fn);
  EXPECT_TRUE(at::equal(load(stored).layers[0].down, stored[name].to(at::kFloat)));
}

TEST_F(Fp8Model, OtherBlocksAndOtherQuantizationsAreRefused) {
  Tensors stored = seeded_parameters(read_hf_config(folder_.path()));
  const std::string name = "model.layers.0.mlp.down_proj.weight";  // [160, 300]
  stored[name] = stored[name].to(at::kFloat8_e4m3fn);
  stored[name + "_scale_inv"] = at::ones({160, 1});
  EXPECT_EQ(error(stored),
            "<>/model.safetensors: tensor 'model.layers.0.mlp.down_proj.weight_scale_inv' is F32 "
            "of shape [160, 1], expected plain scales of shape [2, 3] for blocks of 128 x 128; use "
            "a model saved with such blocks");
  const auto with = [&](const json& settings) {
    json config = kFp8Config;
    config["quantization_config"] = settings;
    write_file(folder_ / "config.json", config.dump());
    return fixtures::error_text(folder_, [&] { read_hf_config(folder_.path()); });
  };
  const std::string remedy =
      ", expected plain numbers or fp8; use the model as it was before that, or a GGUF file of it";
  EXPECT_EQ(with({{"quant_method", "gptq"}, {"bits", 4}}),
            "<>/config.json: 'quantization_config' says that the weights are quantized by "
            "\"gptq\"" +
                remedy);
  EXPECT_EQ(with({{"quant_method", "awq"}}),
            "<>/config.json: 'quantization_config' says that the weights are quantized by \"awq\"" +
                remedy);
  EXPECT_EQ(with({{"quant_method", "fp8"}, {"weight_block_size", {64, 64}}}),
            "<>/config.json: 'weight_block_size' is [64,64], expected [128, 128]; use the "
            "config.json that came with the model, or another model");
  EXPECT_EQ(with({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}), "(no error)");
}

}  // namespace
}  // namespace medusa
