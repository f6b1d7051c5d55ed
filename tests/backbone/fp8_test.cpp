#include "backbone/files/fp8.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backbone/files/safetensors.h"
#include "backbone/weights.h"
#include "base/file.h"
#include "tests/backbone/seeded_fill.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
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

TEST_F(Fp8Model, AMatrixWithoutScalesIsItsNumbers) {
  Tensors stored = seeded_parameters(read_hf_config(folder_.path()));
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  stored[name] = stored[name].to(at::kFloat8_e4m3fn);
  EXPECT_TRUE(at::equal(load(stored).layers[0].down, stored[name].to(at::kFloat)));
}

TEST_F(Fp8Model, OtherBlocksAndOtherQuantisationsAreRefused) {
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
            "<>/config.json: 'quantization_config' says that the weights are quantised by "
            "\"gptq\"" +
                remedy);
  EXPECT_EQ(with({{"quant_method", "awq"}}),
            "<>/config.json: 'quantization_config' says that the weights are quantised by \"awq\"" +
                remedy);
  EXPECT_EQ(with({{"quant_method", "fp8"}, {"weight_block_size", {64, 64}}}),
            "<>/config.json: 'weight_block_size' is [64,64], expected [128, 128]; use the "
            "config.json that came with the model, or another model");
  EXPECT_EQ(with({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}), "(no error)");
}

}  // namespace
}  // namespace medusa
