#include "heads/foreign/export_heads.h"

#include <gtest/gtest.h>

#include "backbone/files/hf_export.h"
#include "backbone/files/safetensors.h"
#include "heads/foreign/foreign_heads.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/foreign/published_heads.h"

namespace medusa {
namespace {

using nlohmann::json;

ChoiceTree some_tree() { return make_choice_tree({{0}, {1}, {0, 0}, {0, 0, 2}}, 3, "tree"); }

class ExportHeads : public ::testing::Test {
 protected:
  ExportedHeads plan(ExportFormat format, HeadOutput output,
                     std::optional<int64_t> num_heads = std::nullopt) {
    heads_ = random_heads(heads_config(HeadInput::Hidden, output, layers_), backbone_);
    return export_heads(heads_, backbone_, some_tree(),
                        {.format = format,
                         .num_heads = num_heads,
                         .dtype = dtype_,
                         .own_outputs = own_outputs_,
                         .base_model = "some/model"},
                        "heads");
  }
  ImportedHeads written_and_read(const ExportedHeads& exported) {
    write_export(place_, exported, model());
    check_export(place_, exported, backbone_);
    return import_heads(read_foreign_heads(place_), backbone_, std::nullopt);
  }
  /// The backbone as a Hugging Face folder.
  std::filesystem::path model() {
    const std::filesystem::path folder = folder_.path() / "model";
    if (std::filesystem::create_directories(folder)) write_hf_model(folder, backbone_, "some.gguf");
    return folder;
  }
  void expect_same(const MedusaHeads& found, int64_t num_heads) {
    EXPECT_EQ(found.config.num_heads, num_heads);
    EXPECT_EQ(found.kept_tokens, heads_.kept_tokens);
    EXPECT_EQ(found.config.output, heads_.config.output);
    const auto a = named_parameters(found), b = named_parameters(heads_);
    if (num_heads == 3) {
      ASSERT_EQ(a.size(), b.size());
    }
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first);
      EXPECT_TRUE(at::equal(a[i].second, b[i].second.to(dtype_).to(at::kFloat))) << a[i].first;
    }
  }
  std::string error(ExportFormat format, HeadOutput output,
                    std::optional<int64_t> num_heads = std::nullopt) {
    return fixtures::error_text(folder_, [&] { plan(format, output, num_heads); });
  }
  json config_of(ExportFormat format, HeadOutput output = HeadOutput::Shared) {
    return json::parse(plan(format, output).config);
  }

  fixtures::TempFolder folder_;
  std::filesystem::path place_ = folder_.path() / "out";
  Weights backbone_ = tiny_weights(1);
  MedusaHeads heads_;
  int64_t layers_ = 1;
  at::ScalarType dtype_ = at::kFloat;
  bool own_outputs_ = false;
};

TEST_F(ExportHeads, EveryFormatReadsBackBitForBit) {
  for (const auto& [name, format] : EnumNames<ExportFormat>::values)
    for (const HeadOutput output : {HeadOutput::Own, HeadOutput::Shared})
      for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
        if (format == ExportFormat::TgiV2 && output == HeadOutput::Own) continue;
        SCOPED_TRACE(std::string(name) + " " + enum_name(output) + " " + at::toString(dtype));
        dtype_ = dtype;
        const ImportedHeads read = written_and_read(plan(format, output));
        EXPECT_EQ(read.dtype, dtype);
        expect_same(read.heads, 3);
      }
}

/// transformers opens the index only where no file is called model.safetensors, and our loader
/// passes the heads over.
TEST_F(ExportHeads, AMedusa2FolderIsTheModelWithHeadsInAShardOfTheirOwn) {
  const ExportedHeads exported = plan(ExportFormat::Medusa2, HeadOutput::Own);
  written_and_read(exported);
  EXPECT_FALSE(std::filesystem::exists(place_ / "model.safetensors"));
  EXPECT_EQ(read_file(place_ / "model-00001-of-00002.safetensors"),
            read_file(model() / "model.safetensors"));
  const json index = json::parse(read_file(place_ / "model.safetensors.index.json"));
  EXPECT_EQ(index.at("weight_map").at("medusa_head.2.1.weight"),
            "model-00002-of-00002.safetensors");
  EXPECT_EQ(index.at("weight_map").at("model.norm.weight"), "model-00001-of-00002.safetensors");
  EXPECT_EQ(
      index.at("weight_map").size(),
      exported.tensors.size() + SafetensorsFile(model() / "model.safetensors").entries().size());
  const json config = json::parse(read_file(place_ / "config.json"));
  EXPECT_EQ(config.at("medusa_num_heads"), 3);
  EXPECT_EQ(config.at("medusa_num_layers"), 1);
  EXPECT_EQ(config.at("model_type"), "llama");
  EXPECT_EQ(config.at("torch_dtype"), "float32");
  const Weights again = load_weights(place_, at::kFloat, at::kCPU);
  EXPECT_TRUE(at::equal(again.layers[1].down, backbone_.layers[1].down));

  EXPECT_EQ(
      fixtures::error_text(folder_, [&] { write_export(folder_ / "twice", exported, place_); }),
      "<>/out/model-00002-of-00002.safetensors: the model holds heads already "
      "('medusa_head.0.0.linear.bias'), expected a model without; export from the model that "
      "this one was made of");
}

TEST_F(ExportHeads, WhatIsAddedBelongsToTheFolderOrNothingIsThere) {
  const ExportedHeads exported = plan(ExportFormat::Vllm, HeadOutput::Shared);
  write_export(place_, exported, model(), {},
               [](const std::filesystem::path& fresh) { write_file(fresh / "more.txt", "more"); });
  EXPECT_EQ(read_file(place_ / "more.txt"), "more");
  const auto fail = [](const std::filesystem::path&) { throw UserError("x: y, expected z; do w"); };
  EXPECT_THROW(write_export(folder_ / "failed", exported, model(), {}, fail), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "failed"));
}

TEST_F(ExportHeads, VllmKeepsTruncatedOutputsAndSeveralLayers) {
  layers_ = 2;
  for (const HeadOutput output : {HeadOutput::TruncatedOwn, HeadOutput::TruncatedShared}) {
    const ExportedHeads exported = plan(ExportFormat::Vllm, output);
    EXPECT_EQ(exported.tensors.at("token_map").size(0), 50);
    expect_same(written_and_read(exported).heads, 3);
  }
}

TEST_F(ExportHeads, TrimsHeadsAndTheTreeWithThem) {
  const ExportedHeads two = plan(ExportFormat::FasterDecoding, HeadOutput::Own, 2);
  EXPECT_EQ(two.tensors.size(), 6U);
  EXPECT_EQ(two.tree_file, "medusa_choices.py");
  EXPECT_EQ(two.tree, "medusa_choices = [(0,), (1,), (0, 0)]\n");
  expect_same(written_and_read(two).heads, 2);
  const ExportedHeads all = plan(ExportFormat::TensorRtLlm, HeadOutput::Own);
  EXPECT_EQ(all.tree_file, "medusa_choices.json");
  EXPECT_EQ(all.tree, "[[0], [1], [0, 0], [0, 0, 2]]\n");
}

TEST_F(ExportHeads, SharedOutputsAreCopiedWhereTheEngineWantsThem) {
  const ExportedHeads exported = plan(ExportFormat::FasterDecoding, HeadOutput::Shared);
  for (const char* name : {"0.1.weight", "1.1.weight", "2.1.weight"})
    EXPECT_TRUE(at::equal(exported.tensors.at(name), backbone_.lm_head)) << name;
  EXPECT_EQ(exported.notes.at(0),
            "the engine wants an output for each head: 3 copies of the LM head are written, 0.1 "
            "MB");
  EXPECT_EQ(plan(ExportFormat::TgiV2, HeadOutput::Shared).tensors.size(), 6U);
  EXPECT_EQ(plan(ExportFormat::Vllm, HeadOutput::Shared).tensors.count("lm_head.weight"), 1U);
  own_outputs_ = true;
  EXPECT_EQ(plan(ExportFormat::Vllm, HeadOutput::Shared).tensors.count("lm_heads.2.weight"), 1U);
}

TEST_F(ExportHeads, TheConfigSaysWhatEnginesAskFor) {
  for (const auto& [name, format] : EnumNames<ExportFormat>::values) {
    const json config = config_of(format);
    EXPECT_EQ(config.at("medusa_fc_bias"), true) << name;
    EXPECT_EQ(config.at("vocab_size"), 130) << name;
    EXPECT_EQ(config.at("base_model_name_or_path"), "some/model") << name;
    EXPECT_EQ(config.contains("architectures"), format == ExportFormat::Vllm) << name;
  }
  EXPECT_EQ(config_of(ExportFormat::FasterDecoding).at("medusa_num_heads"), 3);
  EXPECT_EQ(config_of(ExportFormat::TensorRtLlm).at("num_medusa_heads"), 3);
  const json vllm = config_of(ExportFormat::Vllm, HeadOutput::TruncatedShared);
  EXPECT_EQ(vllm.at("truncated_vocab_size"), 50);
  EXPECT_EQ(vllm.at("original_lm_head"), true);
  EXPECT_EQ(vllm.at("num_hidden_layers"), 1);
}

TEST_F(ExportHeads, HeadsThatNoOtherEngineRunsAreRefused) {
  heads_ = random_heads(heads_config(HeadInput::Sequential, HeadOutput::Shared), backbone_);
  EXPECT_EQ(fixtures::error_text(folder_,
                                 [&] { export_heads(heads_, backbone_, {}, {}, "runs/a/heads"); }),
            "runs/a/heads: these heads read more than the hidden state (input: sequential), and no "
            "other engine runs such heads, expected input: hidden; train heads with --set "
            "train.heads.input=hidden (the same dataset serves) and export those, or export "
            "nothing and let another engine run the model of medusa make-draft, which is a Hugging "
            "Face folder");
  HeadsConfig config = heads_config(HeadInput::Hidden, HeadOutput::Shared);
  config.correction_rank = 32;
  heads_ = random_heads(config, backbone_);
  EXPECT_EQ(fixtures::error_text(folder_,
                                 [&] { export_heads(heads_, backbone_, {}, {}, "runs/a/heads"); }),
            "runs/a/heads: these heads are corrected by the token drafted before (correction_rank: "
            "32), and no other engine runs such heads, expected correction_rank: 0; train heads "
            "with --set train.heads.correction_rank=0 (the same dataset serves) and export those");
}

TEST_F(ExportHeads, WhatAFormatCannotHoldIsRefused) {
  EXPECT_EQ(error(ExportFormat::TgiV2, HeadOutput::Own),
            "heads: these heads have outputs of their own, which 'tgi-v2' has no place for, "
            "expected output: shared; use --format fasterdecoding, which TGI reads as well");
  EXPECT_EQ(error(ExportFormat::TensorRtLlm, HeadOutput::TruncatedOwn),
            "heads: these heads' own outputs hold 50 of 130 tokens, and 'tensorrt-llm' cannot "
            "leave tokens out, expected whole outputs; use --format vllm, or train with "
            "train.heads.output=own");
  EXPECT_EQ(
      error(ExportFormat::Vllm, HeadOutput::Own, 4),
      "heads: there are 3 heads, --num-heads asks for 4, expected at most as many as there are; "
      "ask for fewer");
  layers_ = 2;
  EXPECT_EQ(error(ExportFormat::FasterDecoding, HeadOutput::Own),
            "heads: each head has 2 layers, of which a reader of 'fasterdecoding' would use one, "
            "expected 1 layer; use --format vllm or tensorrt-llm, or train with "
            "train.heads.layers_per_head=1");
}

TEST_F(ExportHeads, NumbersThatDoNotFitAreRefused) {
  heads_ = random_heads(heads_config(HeadInput::Hidden, HeadOutput::Own), backbone_);
  heads_.blocks[1].bias[3] = 1e6;
  EXPECT_EQ(
      fixtures::error_text(
          folder_, [&] { export_heads(heads_, backbone_, {}, {.dtype = at::kHalf}, "heads"); }),
      "heads: '1.0.linear.bias' has a number too large for float16, expected numbers that "
      "fit; use --store-dtype bfloat16 or float32");
}

TEST_F(ExportHeads, CheckingFindsWhatWasAltered) {
  const ExportedHeads exported = plan(ExportFormat::FasterDecoding, HeadOutput::Own);
  const auto error_after = [&](const std::function<void()>& alter) {
    std::filesystem::remove_all(place_);
    write_export(place_, exported, model());
    alter();
    return fixtures::error_text(folder_, [&] { check_export(place_, exported, backbone_); });
  };
  const std::string remedy = "; export again, and look whether the disk is sound";
  EXPECT_EQ(error_after([&] {
              NamedTensors other = exported.tensors;
              other["1.0.linear.bias"] = other["1.0.linear.bias"] + 1;
              write_torch_tensors(place_ / kHeadsPt, other);
            }),
            "<>/out/medusa_lm_head.pt: '1.0.linear.bias' holds other numbers, expected those that "
            "were written" +
                remedy);
  const auto with_config = [&](const char* key, const json& value) {
    return error_after([&] {
      json config = json::parse(exported.config);
      config[key] = value;
      write_config(place_, config);
    });
  };
  EXPECT_EQ(with_config("medusa_fc_bias", false),
            "<>/out/config.json: medusa_fc_bias is not true, expected true beside stored biases" +
                remedy);
  EXPECT_EQ(with_config("architectures", json::array({"LlamaForCausalLM"})),
            "<>/out/config.json: 'architectures' names another kind of model, expected none but "
            "vLLM's own" +
                remedy);
  EXPECT_EQ(with_config("medusa_num_heads", 2),
            "<>/out/config.json: says 2 heads, the tensors are of 3, expected the same; say "
            "--num-heads 3 for all that are stored, or correct config.json");
}

}  // namespace
}  // namespace medusa
