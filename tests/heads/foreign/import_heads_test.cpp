#include <gtest/gtest.h>

#include "heads/foreign/foreign_heads.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/foreign/published_heads.h"

namespace medusa {
namespace {

using nlohmann::json;

void expect_same_heads(const MedusaHeads& found, const MedusaHeads& expected,
                       at::ScalarType dtype) {
  EXPECT_EQ(found.kept_tokens, expected.kept_tokens);
  const auto a = named_parameters(found), b = named_parameters(expected);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second.to(dtype).to(at::kFloat))) << a[i].first;
  }
}

class ImportHeads : public ::testing::Test {
 protected:
  ImportedHeads import(std::optional<int64_t> num_heads = std::nullopt) {
    const ForeignHeads foreign = read_foreign_heads(place_);
    check_hints(foreign, num_heads);
    return import_heads(foreign, backbone_, num_heads);
  }
  std::string error(std::optional<int64_t> num_heads = std::nullopt) {
    return fixtures::error_text(folder_, [&] { import(num_heads); });
  }
  /// medusa_lm_head.safetensors in the paper's layout, float16, three heads.
  NamedTensors plain(HeadOutput output = HeadOutput::Own, int64_t layers = 1) {
    heads_ = random_heads(heads_config(HeadInput::Hidden, output, layers), backbone_);
    return published_tensors(HeadLayout::FasterDecoding, heads_, at::kHalf);
  }
  void write(const NamedTensors& tensors, const char* name = kHeadsSafetensors) {
    write_tensors(place_ / name, tensors, {});
  }

  fixtures::TempFolder folder_;
  std::filesystem::path place_ = folder_.path();
  Weights backbone_ = tiny_weights(1);
  MedusaHeads heads_;
};

TEST_F(ImportHeads, EveryLayoutGivesTheSameHeads) {
  for (const HeadLayout layout : {HeadLayout::FasterDecoding, HeadLayout::Medusa2, HeadLayout::Vllm,
                                  HeadLayout::TensorRtLlm, HeadLayout::ModelOpt})
    for (const HeadOutput output : {HeadOutput::Own, HeadOutput::Shared})
      for (const int64_t layers : {1, 2}) {
        SCOPED_TRACE(std::string(enum_name(layout)) + " " + enum_name(output));
        heads_ = random_heads(heads_config(HeadInput::Hidden, output, layers), backbone_);
        NamedTensors tensors = published_tensors(layout, heads_, at::kBFloat16);
        if (holds_whole_model(layout)) tensors["model.norm.weight"] = at::ones({64});
        write_tensors(place_ / "model.safetensors", tensors, {});
        const ForeignHeads foreign = read_foreign_heads(place_);
        const bool no_outputs =
            layout == HeadLayout::FasterDecoding && output == HeadOutput::Shared;
        EXPECT_EQ(foreign.layout, no_outputs ? HeadLayout::TgiV2 : layout);
        const ImportedHeads imported = import_heads(foreign, backbone_, std::nullopt);
        EXPECT_EQ(imported.dtype, at::kBFloat16);
        EXPECT_EQ(imported.heads.config.input, HeadInput::Hidden);
        EXPECT_EQ(imported.heads.config.output, output);
        EXPECT_EQ(imported.heads.config.num_heads, 3);
        EXPECT_EQ(imported.heads.config.layers_per_head, layers);
        expect_same_heads(imported.heads, heads_, at::kBFloat16);
      }
}

TEST_F(ImportHeads, ATorchFileGivesTheSameHeads) {
  write_torch_tensors(place_ / kHeadsPt, plain());
  expect_same_heads(import().heads, heads_, at::kHalf);
  const ForeignHeads named = read_foreign_heads(place_ / kHeadsPt);
  EXPECT_EQ(named.num_heads, 3) << "the file may be named itself";
}

TEST_F(ImportHeads, VllmsPrefixIsRemovedAsVllmDoes) {
  NamedTensors tensors;
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::Own), backbone_);
  for (const auto& [name, tensor] : published_tensors(HeadLayout::Vllm, heads_, at::kFloat))
    tensors["medusa_heads." + name] = tensor;
  write(tensors);
  expect_same_heads(import().heads, heads_, at::kFloat);
}

TEST_F(ImportHeads, OutputsThatAreTheLmHeadAreShared) {
  NamedTensors tensors = plain(HeadOutput::Shared);
  for (const char* name : {"0.1.weight", "1.1.weight", "2.1.weight"})
    tensors[name] = backbone_.lm_head.to(at::kHalf);
  write(tensors);
  const ImportedHeads imported = import();
  EXPECT_EQ(imported.heads.config.output, HeadOutput::Shared);
  EXPECT_EQ(imported.notes, std::vector<std::string>{
                                "the stored outputs are the backbone's LM head: it is shared"});
  tensors["1.1.weight"] = tensors["1.1.weight"] + 1;
  write(tensors);
  EXPECT_EQ(import().heads.config.output, HeadOutput::Own);
}

TEST_F(ImportHeads, VllmsTokenMapMayBeInAnyOrder) {
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::TruncatedOwn), backbone_);
  NamedTensors tensors = published_tensors(HeadLayout::Vllm, heads_, at::kFloat);
  const at::Tensor map = at::tensor(heads_.kept_tokens, at::kLong);
  for (const bool whole : {false, true}) {
    SCOPED_TRACE(whole ? "outputs of all tokens" : "outputs of the kept tokens");
    NamedTensors stored = tensors;
    stored["token_map"] = map.flip(0);
    for (int64_t head = 0; head < 3; ++head) {
      at::Tensor& output = stored["lm_heads." + std::to_string(head) + ".weight"];
      if (whole)
        output = at::full({130, 64}, 9.0F).index_copy(0, map, output);
      else
        output = output.flip(0);
    }
    write_tensors(place_ / "model.safetensors", stored, {});
    const ImportedHeads imported = import();
    EXPECT_EQ(imported.heads.config.output, HeadOutput::TruncatedOwn);
    EXPECT_EQ(imported.heads.config.output_size, 50);
    expect_same_heads(imported.heads, heads_, at::kFloat);
  }
}

TEST_F(ImportHeads, OneOutputForAllHeadsIsSharedOrCopied) {
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::Shared), backbone_);
  NamedTensors tensors = published_tensors(HeadLayout::Vllm, heads_, at::kFloat);
  tensors["lm_head.weight"] = backbone_.lm_head;
  write(tensors);
  EXPECT_EQ(import().heads.config.output, HeadOutput::Shared);
  tensors["lm_head.weight"] = backbone_.lm_head + 1;
  write(tensors);
  const ImportedHeads other = import();
  EXPECT_EQ(other.heads.config.output, HeadOutput::Own);
  ASSERT_EQ(other.heads.outputs.size(), 3U);
  EXPECT_TRUE(at::equal(other.heads.outputs[2], backbone_.lm_head + 1));
}

TEST_F(ImportHeads, LayersWithoutBiasGetZeros) {
  NamedTensors tensors = plain();
  for (const char* name : {"0.0.linear.bias", "1.0.linear.bias", "2.0.linear.bias"})
    tensors.erase(name);
  write(tensors);
  const ImportedHeads imported = import();
  EXPECT_EQ(imported.heads.blocks[1].bias.abs().max().item<float>(), 0);
  EXPECT_EQ(imported.notes.at(0), "the layers have no bias: zeros stand for it");
}

TEST_F(ImportHeads, AConfigOfTheWrongNumberOfHeadsIsReportedAndCanBeOverruled) {
  write(plain());
  write_config(place_, json{{"medusa_num_heads", 2}, {"medusa_num_layers", 1}});
  EXPECT_EQ(
      error(),
      "<>/config.json: says 2 heads, the tensors are of 3, expected the same; say --num-heads 3 "
      "for all that are stored, or correct config.json");
  EXPECT_EQ(import(3).heads.config.num_heads, 3);
  const ImportedHeads two = import(2);
  EXPECT_EQ(two.heads.config.num_heads, 2);
  EXPECT_EQ(two.heads.blocks.size(), 2U);
  EXPECT_EQ(two.heads.outputs.size(), 2U);
  EXPECT_EQ(two.notes.at(0), "the first 2 of 3 heads are kept");
  EXPECT_EQ(
      error(4),
      "<>: holds 3 heads, --num-heads asks for 4, expected at most as many as there are; ask for "
      "fewer");
}

TEST_F(ImportHeads, OtherContradictionsOfTheConfigAreReported) {
  write(plain());
  const auto with = [&](const json& config) {
    write_config(place_, config);
    return error();
  };
  const std::string remedy = "; correct it, or remove config.json, which is only a hint";
  EXPECT_EQ(
      with({{"medusa_num_layers", 2}}),
      "<>/config.json: says 2 layers per head, the tensors are of 1, expected the same" + remedy);
  EXPECT_EQ(with({{"hidden_size", 128}}),
            "<>/config.json: says 128 numbers in a hidden state, the tensors are of 64, expected "
            "the same" +
                remedy);
  EXPECT_EQ(with({{"vocab_size", 131}}),
            "<>/config.json: says 131 tokens, the tensors are of 130, expected the same" + remedy);
  EXPECT_EQ(with({{"logit_scale", 0.5}}),
            "<>/config.json: multiplies logits by 0.5, expected 1; fold the factor into the "
            "outputs, then remove it");
  EXPECT_EQ(with({{"medusa_num_heads", "five"}}),
            "<>/config.json: 'medusa_num_heads' is \"five\", expected a whole number" + remedy);
  NamedTensors tensors = plain();
  for (const char* name : {"0.0.linear.bias", "1.0.linear.bias", "2.0.linear.bias"})
    tensors.erase(name);
  write(tensors);
  EXPECT_EQ(with({{"medusa_fc_bias", true}}),
            "<>/config.json: says that layers have a bias, the tensors have none, expected the "
            "same" +
                remedy);
}

TEST_F(ImportHeads, HeadsOfAnotherModelAreRefused) {
  write(plain());
  ModelConfig wide = tiny_config();
  wide.hidden_size = 96;
  wide.vocab_size = 140;
  backbone_ = tiny_weights(1, wide);
  EXPECT_EQ(error(),
            "<>: these heads read states of 64 numbers, the backbone's have 96, expected the same; "
            "use heads that were trained on this model");
  wide.hidden_size = 64;
  backbone_ = tiny_weights(1, wide);
  EXPECT_EQ(error(),
            "<>: these heads draft among 130 tokens, the backbone has 140, expected the same; use "
            "heads that were trained on this model");
}

TEST_F(ImportHeads, HolesAndStrangersAmongTheTensorsAreRefused) {
  const std::string remedy = "; download the heads again, or choose others";
  const auto with = [&](const std::function<void(NamedTensors&)>& change) {
    NamedTensors tensors = plain();
    change(tensors);
    write(tensors);
    return error();
  };
  EXPECT_EQ(with([](auto& t) { t.erase("1.0.linear.weight"); }),
            "<>: has no tensor '1.0.linear.weight', expected it in 3 heads of 1 layers" + remedy);
  EXPECT_EQ(with([](auto& t) { t.erase("1.0.linear.bias"); }),
            "<>: has no tensor '1.0.linear.bias', expected it in 3 heads of 1 layers" + remedy);
  EXPECT_EQ(with([](auto& t) { t.erase("2.1.weight"); }),
            "<>: has no tensor '2.1.weight', expected it in 3 heads of 1 layers" + remedy);
  EXPECT_EQ(with([](auto& t) { t["norm.weight"] = at::ones({64}); }),
            "<>: tensor 'norm.weight' belongs to no part of heads in the layout 'fasterdecoding', "
            "expected only heads" +
                remedy);
  EXPECT_EQ(with([](auto& t) {
              t["1.0.linear.weight"] = at::ones({64, 32});
            }),
            "<>: tensor '1.0.linear.weight' has shape [64, 32], expected [64, 64] as "
            "'0.0.linear.weight' suggests" +
                remedy);
  EXPECT_EQ(with([](auto& t) {
              t["1.1.weight"] = at::ones({0, 64});
            }),
            "<>: tensor '1.1.weight' has shape [0, 64], expected one without a 0" + remedy);
  EXPECT_EQ(
      with([](auto& t) { t["1.0.linear.bias"] = at::full({64}, NAN, at::kHalf); }),
      "<>: tensor '1.0.linear.bias' holds a number that is not finite, expected numbers" + remedy);
  EXPECT_EQ(with([](auto& t) {
              t = {{"model.norm.weight", at::ones({64})}};
            }),
            "<>: none of its 1 tensors is named like a Medusa head's ('model.norm.weight', …), "
            "expected names like 0.0.linear.weight, blocks.0.layers.0.weight or "
            "medusa_head.0.0.linear.weight" +
                remedy);
  EXPECT_EQ(with([](auto& t) {
              t = {{"medusa_heads.0.0.linear.weight", at::ones({64, 64})},
                   {"medusa_heads.0.0.linear.weight_scale", at::ones({1})}};
            }),
            "<>: tensor 'medusa_heads.0.0.linear.weight_scale' belongs to quantized heads, "
            "expected float32, float16 or bfloat16 ones" +
                remedy);
}

TEST_F(ImportHeads, APartThatIsThereTwiceIsRefused) {
  const std::string remedy = "; download the heads again, or choose others";
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::Own), backbone_);
  const auto with = [&](const char* name, const at::Tensor& tensor) {
    NamedTensors tensors = published_tensors(HeadLayout::Vllm, heads_, at::kFloat);
    tensors[name] = tensor;
    write(tensors);
    return error();
  };
  EXPECT_EQ(with("medusa_heads.blocks.1.layers.0.weight", at::zeros({64, 64})),
            "<>: tensors 'blocks.1.layers.0.weight' and 'medusa_heads.blocks.1.layers.0.weight' "
            "are the same part of a head, expected one of them" +
                remedy);
  EXPECT_EQ(with("medusa_heads.lm_heads.0.weight", at::zeros({130, 64})),
            "<>: tensors 'lm_heads.0.weight' and 'medusa_heads.lm_heads.0.weight' are the same "
            "part of a head, expected one of them" +
                remedy);
  EXPECT_EQ(with("lm_head.weight", backbone_.lm_head),
            "<>: holds 'lm_head.weight' for all heads and 'lm_heads.0.weight' for one, expected "
            "one kind of output" +
                remedy);
}

TEST_F(ImportHeads, HeadsInTwoLayoutsAreRefused) {
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::Own), backbone_);
  NamedTensors tensors = published_tensors(HeadLayout::Medusa2, heads_, at::kFloat);
  tensors["model.norm.weight"] = at::ones({64});  // of the whole model
  write(tensors);
  EXPECT_EQ(error(), "(no error)");
  tensors["medusa_heads.0.0.linear.weight"] = at::zeros({64, 64});
  write(tensors);
  EXPECT_EQ(error(),
            "<>: tensor 'medusa_heads.0.0.linear.weight' is named in the layout 'modelopt' and "
            "others in 'medusa-2', expected heads in one layout; download the heads again, or "
            "choose others");
}

TEST_F(ImportHeads, MoreHeadsThanAreRunAreRefused) {
  HeadsConfig config = heads_config(HeadInput::Hidden, HeadOutput::Own);
  config.num_heads = 17;
  heads_ = random_heads(config, backbone_);
  write(published_tensors(HeadLayout::FasterDecoding, heads_, at::kHalf));
  EXPECT_EQ(error(), "<>: 17 heads, expected at most 16; keep fewer with --num-heads");
  EXPECT_EQ(import(16).heads.config.num_heads, 16);
  write(plain(HeadOutput::Own, 9));
  EXPECT_EQ(error(), "<>: heads of 9 layers, expected at most 8; use other heads");
}

TEST_F(ImportHeads, ATokenMapThatIsNoListOfTokensIsRefused) {
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::TruncatedOwn), backbone_);
  NamedTensors tensors = published_tensors(HeadLayout::Vllm, heads_, at::kFloat);
  const auto with = [&](const at::Tensor& map) {
    tensors["token_map"] = map;
    write(tensors);
    return error();
  };
  EXPECT_EQ(with(at::arange(49)),
            "<>: token_map lists 49 tokens, the outputs have 50 rows, expected as many or 130; "
            "export the heads again");
  EXPECT_EQ(with(at::arange(50) + 100),
            "<>: token_map names token 130, expected tokens below 130; export the heads again, or "
            "use heads of this model");
  EXPECT_EQ(with(at::zeros({50}, at::kLong)),
            "<>: token_map names token 0 twice, expected each once; export the heads again, or use "
            "heads of this model");
}

TEST_F(ImportHeads, NothingToImportIsSaid) {
  EXPECT_EQ(error(),
            "<>: holds neither medusa_lm_head.safetensors nor medusa_lm_head.pt nor another "
            ".safetensors file, expected heads in one of these; name the file itself if it is "
            "called otherwise");
  place_ = place_ / "nowhere";
  EXPECT_EQ(error(),
            "<>/nowhere: no such file or folder, expected published heads; check the path");
}

TEST(HeadNames, AreReadAsTheyAreWritten) {
  for (const auto& [text, layout] : EnumNames<HeadLayout>::values) {
    const HeadTensorName weight{HeadTensorKind::Weight, 3, 2};
    const auto read = parse_head_name(layout, head_tensor_name(layout, weight));
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->head, 3);
    EXPECT_EQ(read->layer, 2);
  }
  EXPECT_FALSE(parse_head_name(HeadLayout::FasterDecoding, "0.00.linear.weight"));
  EXPECT_FALSE(parse_head_name(HeadLayout::FasterDecoding, "0.0.linear.weight2"));
  EXPECT_FALSE(parse_head_name(HeadLayout::FasterDecoding, "a.0.linear.weight"));
  EXPECT_FALSE(layout_of_name("lm_head.weight")) << "every model has one";
}

}  // namespace
}  // namespace medusa
