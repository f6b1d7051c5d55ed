// import, export, doctor and dataset, through the executable.
#include <algorithm>
#include <list>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/formats/safetensors_file.h"
#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class Formats : public DistilledRun {
 protected:
  std::string succeed(const std::string& arguments) const {
    const ProcessResult ran = place_.run(arguments);
    EXPECT_EQ(ran.status, 0) << arguments << "\n" << ran.err;
    return ran.out;
  }
  std::string refused(const std::string& arguments) const {
    const ProcessResult ran = place_.run(arguments);
    EXPECT_EQ(ran.status, 2) << arguments << "\n" << ran.err;
    return ran.err.substr(std::min(ran.err.find("medusa: "), ran.err.size()));
  }
  json doctor(const std::string& arguments, int status) const {
    const ProcessResult ran =
        place_.run("doctor " + arguments + " --json --chat-template plain --tokens 24" +
                   " --questions prompts.jsonl --backbone " + CliFixture::model());
    EXPECT_EQ(ran.status, status) << ran.err;
    return json::parse(ran.out);
  }
  /// Long enough for heads that are right now and then.
  void train(const std::string& input) const {
    succeed(
        "train --config run.yaml --set train.epochs=60 --set train.learning_rate=0.01 --set "
        "train.checkpoint_every=1000 --set train.heads.input=" +
        input);
  }
};

TEST_F(Formats, EveryExportIsCheckedAndComesBackBitForBit) {
  train("hidden");
  succeed("calibrate --config run.yaml");
  const std::string original = file_text(place_ / "runs/tiny/heads/heads.safetensors");
  for (const std::string format : {"fasterdecoding", "tgi-v2", "vllm", "tensorrt-llm"}) {
    const json exported = json::parse(succeed("export --config run.yaml --check --json --format " +
                                              format + " --output out/" + format));
    EXPECT_EQ(exported.at("num_heads"), 2);
    const json seen = json::parse(succeed("inspect out/" + format + " --json"));
    EXPECT_EQ(seen.at("heads").at("num_heads"), 2) << seen;
    EXPECT_FALSE(seen.contains("cannot_run")) << seen;
    const ProcessResult imported = place_.run(
        "import out/" + format + " --config run.yaml --set generate.heads=back/" + format);
    EXPECT_EQ(imported.status, 0) << imported.err;
    EXPECT_NE(imported.err.find(" doctor back/" + format + " --model "), std::string::npos);
    EXPECT_NE(imported.err.find(" --chat-template plain\n"), std::string::npos) << imported.err;
    EXPECT_EQ(file_text(place_ / ("back/" + format + "/heads.safetensors")), original) << format;
  }
  EXPECT_NE(
      file_text(place_ / "out/fasterdecoding/medusa_choices.py").find("medusa_choices = [(0,),"),
      std::string::npos);
  EXPECT_EQ(json::parse(file_text(place_ / "out/tensorrt-llm/medusa_choices.json")).at(0),
            json({0}));
  succeed("inspect back/vllm");
  const std::string whole = " --config run.yaml --set backbone.model=out/medusa-2 ";
  // Under a library that writes down what is made: all of it before the folder has its name.
  const std::string folder = (place_ / "").string();
  const ProcessResult exported =
      place_.run_as("LD_PRELOAD=" MEDUSA_FAULT_SHIM " FAULT_LOG=" + folder +
                        "made FAULT_FOLDER=" + folder.substr(0, folder.size() - 1) + " ",
                    "export --config run.yaml --check --format medusa-2 --output out/medusa-2");
  EXPECT_EQ(exported.status, 0) << exported.err;
  const std::string made = file_text(place_ / "made");
  EXPECT_NE(made.find("/out/medusa-2.partial/tokenizer.gguf"), std::string::npos);
  EXPECT_EQ(made.find("/out/medusa-2/"), std::string::npos) << made;
  succeed("import out/medusa-2 --set generate.heads=back/medusa-2" + whole);
  EXPECT_EQ(file_text(place_ / "back/medusa-2/heads.safetensors"), original);
  succeed("import out/fasterdecoding/medusa_lm_head.pt --config run.yaml --set generate.heads=pt");
  EXPECT_EQ(file_text(place_ / "pt/heads.safetensors"), original);
  const std::string ask = "generate --config run.yaml --json --prompt 'Once upon a time'";
  const json plain = json::parse(succeed(ask + " --drafter none"));
  const json fast = json::parse(succeed(ask + " --drafter blockwise --set generate.heads=pt"));
  EXPECT_EQ(fast.at("answers").at(0).at("tokens"), plain.at("answers").at(0).at("tokens"));
  // The model with its heads is written in bfloat16, so its own text is what its heads must give.
  const std::string ask_whole = "generate --json --prompt 'Once upon a time'" + whole;
  const json whole_plain = json::parse(succeed(ask_whole + "--drafter none"));
  const json whole_fast =
      json::parse(succeed(ask_whole + "--drafter blockwise --set generate.heads=back/medusa-2"));
  EXPECT_EQ(whole_fast.at("answers").at(0).at("tokens"),
            whole_plain.at("answers").at(0).at("tokens"));
}

TEST_F(Formats, HeadsThatNoOtherEngineRunsAreRefusedWithWhatCanBeDone) {
  train("root");
  const std::string error = refused("export --config run.yaml --format vllm --output out/vllm");
  EXPECT_NE(error.find("runs/tiny/heads: these heads read more than the hidden state (input: "
                       "root)"),
            std::string::npos)
      << error;
  EXPECT_FALSE(std::filesystem::exists(place_ / "out"));
}

TEST_F(Formats, HeadsWithoutACorrectionAreTrainedFurtherWithOne) {
  train("hidden");
  const std::string more =
      " --config run.yaml --run runs/more --set train.data=[runs/tiny/dataset] --set "
      "train.heads.input=hidden --set train.heads.correction_rank=32 ";
  succeed("train --set train.epochs=4 --set train.begin_with=runs/tiny/heads" + more);
  succeed("calibrate" + more);
  const json inspected = json::parse(succeed("inspect --json runs/more/heads"));
  EXPECT_EQ(inspected.at("correction_rank"), 32);
  EXPECT_FALSE(json::parse(succeed("inspect --json runs/tiny/heads")).contains("correction_rank"));
  const json examined = doctor("runs/more/heads", 0);
  EXPECT_EQ(examined.at("findings").at(0).at("code"), "own_engine_only");
  EXPECT_GT(examined.at("acceptance").at("positions"), 50);
  EXPECT_EQ(doctor("runs/more/heads --engine medusa", 0).at("works"), true);
  EXPECT_EQ(doctor("runs/more/heads --engine vLLM", 2).at("works"), false);
  EXPECT_EQ(json::parse(succeed("report --json" + more)),
            json({{"report", "runs/more/report.html"}}));
  EXPECT_NE(file_text(place_ / "runs/more/report.html").find("corrected by factors of rank 32"),
            std::string::npos);
  EXPECT_NE(refused("export --format vllm --output out/vllm" + more)
                .find("these heads are corrected by the token drafted before"),
            std::string::npos);
  const std::string ask = "generate --json --prompt 'Once upon a time'" + more;
  const json plain = json::parse(succeed(ask + "--drafter none"));
  for (const std::string drafter : {"medusa", "merge", "medusa --set generate.medusa.dynamic=true"})
    EXPECT_EQ(json::parse(succeed(ask + "--drafter " + drafter)).at("answers").at(0).at("tokens"),
              plain.at("answers").at(0).at("tokens"))
        << drafter;
}

TEST_F(Formats, TheDoctorMeasuresSoundHeadsAndFindsDamage) {
  train("hidden");
  const json own = doctor("runs/tiny/heads", 0);
  EXPECT_EQ(own.at("works"), true);
  EXPECT_GT(own.at("acceptance").at("positions"), 50);
  EXPECT_EQ(own.at("acceptance").at("top_1").size(), 2U);

  succeed("export --config run.yaml --format vllm --output out/vllm");
  const json sound = doctor("out/vllm", 0);
  EXPECT_EQ(sound.at("findings"), json::array());
  EXPECT_EQ(sound.at("acceptance"), own.at("acceptance")) << "the same heads";

  json config = json::parse(file_text(place_ / "out/vllm/config.json"));
  config.erase("medusa_fc_bias");
  write_text(place_ / "out/vllm/config.json", config.dump());
  const json damaged = doctor("out/vllm", 2);
  EXPECT_EQ(damaged.at("works"), false);
  EXPECT_EQ(damaged.at("findings").at(0).at("code"), "bias_flag");
  EXPECT_EQ(doctor("out/vllm --engine TGI", 0).at("works"), true);
  const json unreadable = doctor("prompts.jsonl", 2);
  EXPECT_EQ(unreadable.at("findings").at(0).at("code"), "unreadable");
}

/// Files that look sound may still be of another model: only measuring tells.
TEST_F(Formats, TheDoctorFindsHeadsThatAreNeverRight) {
  succeed(
      "train --config run.yaml --set train.epochs=60 --set train.learning_rate=0.01 --set "
      "train.checkpoint_every=1000 --set train.heads.input=hidden --set train.heads.output=own");
  succeed("export --config run.yaml --format fasterdecoding --output out/a");
  EXPECT_EQ(doctor("out/a", 0).at("works"), true);
  // Each output's rows one token further on, as if another vocabulary had been trained on.
  const std::filesystem::path file = place_ / "out/a/medusa_lm_head.safetensors";
  const SafetensorsFile sound(file);
  std::vector<SafetensorsEntry> entries = sound.entries();
  std::list<std::vector<uint8_t>> turned;
  for (SafetensorsEntry& entry : entries) {
    if (!entry.name.ends_with(".1.weight")) continue;
    auto& bytes = turned.emplace_back(entry.bytes.begin(), entry.bytes.end());
    std::rotate(bytes.begin(), bytes.end() - static_cast<int64_t>(bytes.size()) / entry.shape[0],
                bytes.end());
    entry.bytes = bytes;
  }
  EXPECT_EQ(turned.size(), 2U);
  std::filesystem::create_directories(place_ / "out/b");
  write_safetensors(place_ / "out/b/medusa_lm_head.safetensors", entries, {});
  std::filesystem::copy_file(place_ / "out/a/config.json", place_ / "out/b/config.json");
  const json damaged = doctor("out/b", 2);
  EXPECT_LT(damaged.at("acceptance").at("top_1").at(0), 0.02);
  EXPECT_NE(damaged.dump().find("\"acceptance_zero\""), std::string::npos) << damaged;
}

TEST_F(Formats, TheDoctorTellsOurHeadsOfAnotherModel) {
  train("hidden");
  const std::filesystem::path manifest = place_ / "runs/tiny/heads/manifest.yaml";
  std::string text = file_text(manifest);
  const size_t at = text.find("backbone: sha256:");
  ASSERT_NE(at, std::string::npos) << text;
  char& digit = text[at + std::string("backbone: sha256:").size()];
  digit = digit == '0' ? '1' : '0';
  write_text(manifest, text);
  const json found = doctor("runs/tiny/heads", 2);
  EXPECT_EQ(found.at("findings").at(0).at("code"), "other_backbone") << found;
}

TEST_F(Formats, ImportNeverReplacesHeads) {
  train("hidden");
  succeed("export --config run.yaml --format vllm --output out/vllm");
  EXPECT_EQ(refused("import out/vllm --config run.yaml"),
            "medusa: runs/tiny/heads: there are heads already, expected a new folder; remove them, "
            "or name another place with --heads FOLDER\n");
  EXPECT_EQ(refused("export --config run.yaml --format vllm --output out/vllm"),
            "medusa: out/vllm: exists already, expected a new folder; remove it or name another "
            "with --output\n");
  write_text(place_ / "file", "text");
  EXPECT_EQ(refused("export --config run.yaml --format vllm --output file/vllm")
                .find("medusa: file/vllm: "),
            0U);
  EXPECT_EQ(
      refused("export --config run.yaml --format onnx --output out/onnx"),
      "medusa: --format is 'onnx', expected one of fasterdecoding | tgi-v2 | vllm | tensorrt-llm "
      "| medusa-2; correct it, see medusa export --help\n");
}

TEST_F(Formats, ADatasetGoesOutAsTextAndComesBack) {
  succeed("dataset export text.jsonl --config run.yaml");
  const std::string lines = file_text(place_ / "text.jsonl");
  const json first = json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first.at("prompt"), "Once upon a time");
  EXPECT_GT(first.at("tokens").size(), first.at("answer_start"));
  succeed("dataset export text.json --to sharegpt --config run.yaml");
  const json sharegpt = json::parse(file_text(place_ / "text.json"));
  EXPECT_EQ(sharegpt.at(0).at("conversations").at(0).at("value"), "Once upon a time");
  const json back =
      json::parse(succeed("dataset import text.json --json --config run.yaml --set run=back --set "
                          "backbone.chat_template=chatml"));
  EXPECT_EQ(back.at("answers"), sharegpt.size()) << back;

  write_text(
      place_ / "other.jsonl",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Once\"}, {\"role\": \"assistant\", "
      "\"content\": \"there was a cat.\"}]}\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"Tim\"}, {\"from\": \"gpt\", "
      "\"value\": \"  \"}]}\n"
      "{\"conversations\": [{\"from\": \"bing\", \"value\": \"Tim\"}]}\n");
  const std::string import =
      "dataset import other.jsonl --json --config run.yaml --set run=new "
      "--set backbone.chat_template=chatml";
  EXPECT_EQ(place_.run_as("sh -c 'ulimit -f 4; exec \"$@\"' sh ", import).status, 2);
  const ProcessResult in = place_.run(import);  // nothing of it is in the way
  ASSERT_EQ(in.status, 0) << in.err;
  const json imported = json::parse(in.out);
  EXPECT_EQ(imported.at("answers"), 1);
  EXPECT_EQ(imported.at("empty"), 1);
  EXPECT_EQ(imported.at("skipped"), 1);
  EXPECT_EQ(json::parse(succeed("inspect new/dataset --json")).at("complete"), true);
}

TEST_F(Formats, AnExportReplacesAnEarlierOneAndNothingElse) {
  for (const std::string name : {"again.jsonl", "again.json --to sharegpt"}) {
    succeed("dataset export " + name + " --config run.yaml");
    succeed("dataset export " + name + " --config run.yaml");
  }
  const std::string own =
      R"({"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"id":"1"})";
  for (const std::string& text :
       {own + "\n" + R"({"answer":"mine","question":"q"})" + "\n",
        R"({"answer":"mine","question":"q"})" + std::string("\n"),
        R"({"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"id":"1",)" +
            std::string(R"("notes":"x"})") + "\n",
        R"({"conversations": [{"from":"human","value":"q"}],"id":"1"})" + std::string("\n"),
        std::string("[\n]\n")}) {
    write_text(place_ / "own.jsonl", text);
    EXPECT_NE(refused("dataset export own.jsonl --to sharegpt --config run.yaml")
                  .find("own.jsonl: holds something else, expected an earlier export"),
              std::string::npos)
        << text;
    EXPECT_EQ(file_text(place_ / "own.jsonl"), text);
  }
}

/// An EAGLE-3 draft with arbitrary numbers for the fixture's model, as it would be published.
void publish_draft(const std::filesystem::path& folder, const json& model) {
  const int64_t hidden = model.at("hidden_size"), heads = model.at("num_heads"),
                kv_heads = model.at("num_kv_heads"), size = model.at("head_size"),
                mlp = model.at("mlp_size"), vocab = model.at("vocab_size"), draft_vocab = 50;
  const std::string layer = "midlayer.";
  const std::vector<std::pair<std::string, std::vector<int64_t>>> shapes{
      {"fc.weight", {hidden, 3 * hidden}},
      {layer + "hidden_norm.weight", {hidden}},
      {layer + "input_layernorm.weight", {hidden}},
      {layer + "post_attention_layernorm.weight", {hidden}},
      {layer + "self_attn.q_proj.weight", {heads * size, 2 * hidden}},
      {layer + "self_attn.k_proj.weight", {kv_heads * size, 2 * hidden}},
      {layer + "self_attn.v_proj.weight", {kv_heads * size, 2 * hidden}},
      {layer + "self_attn.o_proj.weight", {hidden, heads * size}},
      {layer + "mlp.gate_proj.weight", {mlp, hidden}},
      {layer + "mlp.up_proj.weight", {mlp, hidden}},
      {layer + "mlp.down_proj.weight", {hidden, mlp}},
      {"norm.weight", {hidden}},
      {"lm_head.weight", {draft_vocab, hidden}}};
  std::list<std::vector<float>> numbers;
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, shape] : shapes) {
    std::vector<float>& each = numbers.emplace_back();
    const int64_t count = shape[0] * (shape.size() > 1 ? shape[1] : 1);
    for (int64_t i = 0; i < count; ++i)
      each.push_back(shape.size() == 1 ? 1.0F
                                       : static_cast<float>((i * 7919 + 13) % 201 - 100) / 800.0F);
    entries.push_back(
        {name, "F32", shape, {reinterpret_cast<const uint8_t*>(each.data()), 4 * each.size()}});
  }
  std::vector<int64_t> offsets;  // row r is token 3 r
  for (int64_t row = 0; row < draft_vocab; ++row) offsets.push_back(2 * row);
  entries.push_back({"d2t",
                     "I64",
                     {draft_vocab},
                     {reinterpret_cast<const uint8_t*>(offsets.data()), 8 * offsets.size()}});
  std::filesystem::create_directories(folder);
  write_safetensors(folder / "model.safetensors", entries, {});
  const json config{{"architectures", {"LlamaForCausalLMEagle3"}},
                    {"hidden_size", hidden},
                    {"num_attention_heads", heads},
                    {"num_key_value_heads", kv_heads},
                    {"head_dim", size},
                    {"intermediate_size", mlp},
                    {"vocab_size", vocab},
                    {"draft_vocab_size", draft_vocab},
                    {"rms_norm_eps", 1e-5},
                    {"eagle_aux_hidden_state_layer_ids", {1, 2, 4}}};
  write_text(folder / "config.json", config.dump());
}

TEST_F(Formats, APublishedEagle3DraftIsImportedAndDrafts) {
  const json model = json::parse(succeed("inspect " + CliFixture::model() + " --json")).at("model");
  publish_draft(place_ / "published", model);
  EXPECT_EQ(json::parse(succeed("inspect published --json")).at("kind"), "EAGLE-3 draft");
  json found = doctor("published", 0);
  EXPECT_EQ(found.at("works"), true);
  EXPECT_NE(found.at("heads").get<std::string>().find("features before layers 1, 2, 4"),
            std::string::npos)
      << found;

  const json imported =
      json::parse(succeed("import published --config run.yaml --format eagle3 --json"));
  EXPECT_EQ(imported.at("draft"), "runs/tiny/eagle3");
  EXPECT_EQ(imported.at("draft_vocab"), 50);
  EXPECT_EQ(refused("import published --config run.yaml --heads other"),
            "medusa: --heads other: found an EAGLE-3 draft in published, expected heads; leave it "
            "out, or name the draft's place with --set generate.eagle3.draft=FOLDER\n");
  const json kept = json::parse(succeed("inspect runs/tiny/eagle3 --json"));
  EXPECT_EQ(kept.at("fingerprint"), imported.at("fingerprint"));
  EXPECT_EQ(kept.at("source"), "published (eagle3)");
  EXPECT_EQ(doctor("runs/tiny/eagle3", 0).at("works"), true);
  // Without the word it is known by its settings.
  EXPECT_EQ(refused("import published --config run.yaml"),
            "medusa: runs/tiny/eagle3: there is a draft already, expected a new folder; remove it, "
            "or name another place with --set generate.eagle3.draft=FOLDER\n");
  EXPECT_EQ(refused("import published --config run.yaml --num-heads 2"),
            "medusa: --num-heads is given and the folder holds an EAGLE-3 draft, expected heads; "
            "leave it out\n");

  const std::string ask = "generate --config run.yaml --json --prompt 'Once upon a time' ";
  for (const std::string rule : {"", "--temperature 0.7 "}) {
    const json plain = json::parse(succeed(ask + rule + "--drafter none")).at("answers").at(0);
    for (const std::string drafter :
         {"--drafter eagle3",
          "--drafter merge --set generate.merge.drafters=[prompt_lookup,eagle3]"}) {
      const json drafted = json::parse(succeed(ask + rule + drafter)).at("answers").at(0);
      EXPECT_EQ(drafted.at("tokens"), plain.at("tokens")) << rule << drafter;
    }
    const json alone = json::parse(succeed(ask + rule + "--drafter eagle3")).at("answers").at(0);
    EXPECT_GT(alone.at("stats").at("proposed"), 0);
  }
  succeed(ask + "--drafter eagle3 --temperature 0.7 --rule rejection");
  EXPECT_NE(refused(ask + "--drafter eagle3 --set generate.eagle3.draft=nowhere")
                .find("nowhere: not found or no draft of ours, expected an EAGLE-3 draft"),
            std::string::npos);
}

}  // namespace
}  // namespace medusa::cli
