#include "tools/inspect/inspect.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/formats/safetensors_file.h"
#include "data/dataset/dataset_writer.h"
#include "infer/drafters/text_store.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/tools/bench_samples.h"
#include "tests/tools/example_run.h"
#include "tools/bench/result_folder.h"
#include "tools/bench/summary.h"
#include "tools/inspect/artifact_kind.h"
#include "tools/report/section_parts.h"
#include "train/record/checkpoint.h"
#include "train/record/event_file.h"

namespace medusa {
namespace {

void write_example_dataset(const std::filesystem::path& folder) {
  DatasetInfo info{.backbone = "sha256:aa",
                   .tokenizer = "sha256:bb",
                   .prompts = "sha256:cc",
                   .sampling = "temperature: 0.7\n",
                   .seed = 3,
                   .vocab_size = 100,
                   .hidden_size = 0};
  DatasetWriter writer(folder, info, 3, 2);
  for (int64_t i = 0; i < 3; ++i)
    writer.add(i, Sample{.prompt_id = fmt::format("p{}", i),
                         .tokens = {1, 2, 3, 4, 5},
                         .answer_start = 2,
                         .hidden = {}});
}

void write_example_safetensors(const std::filesystem::path& file) {
  const std::vector<uint8_t> bytes(24, 0);
  const std::vector<SafetensorsEntry> entries{{"a", "F32", {2, 2}, std::span(bytes).first(16)},
                                              {"b", "BF16", {4}, std::span(bytes).first(8)}};
  write_safetensors(file, entries, {{"made_by", "test"}});
}

void write_example_store(const std::filesystem::path& file) {
  TextStoreWriter writer;
  writer.add(std::vector<TokenId>{1, 2, 3});
  writer.add(std::vector<TokenId>{4});
  writer.write(file, {"sha256:aa", "sha256:bb", "training"});
}

TEST(Inspect, TellsKindsByContentNotByName) {
  const fixtures::TempFolder folder;
  write_choice_tree(folder / "a.txt", *fixtures::example_run(16).tree.value, "");
  write_file(folder / "b", fixtures::example_comparison());
  write_file(folder / "c.yaml", fixtures::example_metrics());
  write_file(folder / "d", "backbone:\n  model: m.gguf\n");
  write_example_safetensors(folder / "e.json");
  write_example_dataset(folder / "f");
  write_example_store(folder / "g");
  EXPECT_EQ(inspect(folder / "a.txt")["kind"], "choice tree");
  EXPECT_EQ(inspect(folder / "b")["kind"], "comparison");
  EXPECT_EQ(inspect(folder / "c.yaml")["kind"], "training metrics");
  EXPECT_EQ(inspect(folder / "d")["kind"], "run settings");
  EXPECT_EQ(inspect(folder / "e.json")["kind"], "safetensors file");
  EXPECT_EQ(inspect(folder / "f")["kind"], "dataset");
  EXPECT_EQ(inspect(folder / "f" / "shard-00000.h5")["kind"], "dataset shard");
  EXPECT_EQ(inspect(folder / "g")["kind"], "text store");
  EventFile(folder / "h", 0).add(20, {{"train/loss_nats", 2.5}});
  EXPECT_EQ(inspect(folder / "h")["kind"], "training metrics for TensorBoard");
  EXPECT_EQ(inspect(folder / "h")["summary"], "1 curves up to step 20");
  EXPECT_EQ(inspect(folder / "h")["curves"][0]["last"], 2.5);
  const auto run = inspect(folder.path());
  EXPECT_EQ(run["kind"], "folder");
  EXPECT_EQ(run["contents"].size(), 8u);
  EXPECT_EQ(run["contents"][0]["summary"].get<std::string>().substr(0, 8), "16 nodes");
}

TEST(Inspect, CountsADataset) {
  const fixtures::TempFolder folder;
  write_example_dataset(folder / "set");
  const auto found = inspect(folder / "set");
  EXPECT_EQ(found["num_answers"], 3);
  EXPECT_EQ(found["num_shards"], 2);
  EXPECT_EQ(found["prompt_tokens"], 6);
  EXPECT_EQ(found["answer_tokens"], 9);
  EXPECT_EQ(found["complete"], true);
  EXPECT_EQ(found["made_from"]["tokenizer"], "sha256:bb");
}

TEST(Inspect, AddsUpTensorsByType) {
  const fixtures::TempFolder folder;
  write_example_safetensors(folder / "x");
  const auto found = inspect(folder / "x");
  EXPECT_EQ(found["num_parameters"], 8);
  EXPECT_EQ(found["tensor_data_bytes"], 24);
  EXPECT_DOUBLE_EQ(found["bits_per_parameter"].get<double>(), 24);
  ASSERT_EQ(found["tensors_by_type"].size(), 2u);
  EXPECT_EQ(found["tensors_by_type"][0]["type"], "F32");
  EXPECT_EQ(found["metadata"]["made_by"], "test");
}

TEST(Inspect, ATextStoreSaysWhatItHoldsAndWhereItIsFrom) {
  const fixtures::TempFolder folder;
  write_example_store(folder / "x");
  const auto found = inspect(folder / "x");
  EXPECT_EQ(found["summary"], "2 texts, 4 tokens");
  EXPECT_EQ(found["samples"], "training");
  EXPECT_EQ(found["tokenizer"], "sha256:aa");
  EXPECT_EQ(found["dataset"], "sha256:bb");
}

TEST(Inspect, RefusesWhatItDoesNotKnowAndSaysWhatItKnows) {
  const fixtures::TempFolder folder;
  write_file(folder / "notes.txt", "hello\n");
  make_folder(folder / "empty");
  const std::string known =
      " of no known kind, expected a dataset folder or shard (.h5), heads, a training checkpoint, "
      "a choice tree (.yaml), a text store, prompts (.jsonl, .json), run settings (.yaml), "
      "metrics.jsonl, "
      "an event file, compare.json, bench.json, bench.jsonl, profile.json, layers.json, a draft "
      "model, an EAGLE-3 draft, a GGUF or safetensors "
      "file, a Hugging "
      "Face model folder or a run folder; pass one of these";
  EXPECT_EQ(fixtures::error_text([&] { inspect(folder / "notes.txt"); }),
            (folder / "notes.txt").string() + ": a file" + known);
  EXPECT_EQ(fixtures::error_text([&] { inspect(folder / "empty"); }),
            (folder / "empty").string() + ": a folder" + known);
  EXPECT_EQ(fixtures::error_text([&] { inspect(folder / "nothing"); }),
            (folder / "nothing").string() +
                ": no such file or folder, expected something to inspect; check the path");
}

TEST(Inspect, AFormatThatIsNoTextIsNoneOfOurs) {
  const fixtures::TempFolder folder;
  write_file(folder / "a", R"({"format": 7})");
  EXPECT_NE(fixtures::error_text([&] { inspect(folder / "a"); }).find("of no known kind"),
            std::string::npos);
  std::string header = R"({"__metadata__":{"format":["x"]},"a":{"dtype":"U8","shape":[0],)"
                       R"("data_offsets":[0,0]}})";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  write_file(folder / "b", length + header);
  EXPECT_EQ(find_kind(folder / "b"), ArtifactKind::Safetensors);
}

// Two links to the folder itself are 2^40 ways through it.
TEST(Inspect, AFolderThatLeadsBackToItselfIsLookedThroughOnce) {
  const fixtures::TempFolder folder;
  for (const char* name : {"x", "y", "z"}) std::filesystem::create_symlink(".", folder / name);
  EXPECT_EQ(find_kind(folder.path()), std::nullopt);
  write_file(folder / "a", "{\"text\": \"Hello\"}\n");
  make_folder(folder / "inner");
  write_file(folder / "inner/b", "{\"text\": \"Hello\"}\n");
  const auto found = inspect(folder.path());
  EXPECT_EQ(found["summary"], "a, inner, x, y, z");
  EXPECT_EQ(found["contents"][1]["summary"], "b");
}

TEST(Inspect, ABenchIsItsConditionsAndItsMethods) {
  const fixtures::TempFolder folder;
  const std::vector<BenchSample> samples{
      fixtures::make_sample({.question = 0, .category = "a"}),
      fixtures::make_sample({.method = "medusa", .question = 0, .category = "a", .steps = 5}),
      fixtures::make_sample({.question = 1, .category = "b"}),
      fixtures::make_sample({.method = "medusa", .question = 1, .category = "b", .steps = 5})};
  write_samples(folder / "bench.jsonl", samples);
  BenchResult result;
  result.num_questions = 2;
  result.complete = true;
  result.conditions = {{"dtype", "float32"}};
  result.rows = summarize(samples, 1);
  write_file(folder / "bench.json", bench_json(result).dump());

  const auto bench = inspect(folder / "bench.json");
  EXPECT_EQ(bench["kind"], "bench");
  EXPECT_EQ(bench["summary"], "2 methods over 2 questions");
  EXPECT_EQ(bench["conditions"]["dtype"], "float32");
  ASSERT_EQ(bench["methods"].size(), 2U);  // not once for each category
  EXPECT_EQ(bench["methods"][1]["method"], "medusa");
  EXPECT_EQ(bench["methods"][1]["tokens_per_step"], 2.0);

  const auto answers = inspect(folder / "bench.jsonl");
  EXPECT_EQ(answers["kind"], "answers of a bench");
  EXPECT_EQ(answers["tokens"], 40);
  EXPECT_EQ(answers["questions_answered"]["medusa, temperature 0"], 2);

  write_file(folder / "bench.json",
             R"({"format": "medusa-bench", "conditions": [], "rows": [{"method": "x"}]})");
  EXPECT_NE(fixtures::error_text([&] {
              inspect(folder / "bench.json");
            }).find("expected the summary that medusa bench writes; run it again"),
            std::string::npos);
}

TEST(Inspect, AFileOfAFolderSaysWhatItIsForAndWhereItBelongs) {
  const fixtures::TempFolder folder;
  make_folder(folder / "heads");
  for (const char* name : {"manifest.yaml", "DONE"})
    write_file(folder / ("heads/" + std::string(name)), "");
  const auto done = inspect(folder / "heads/DONE");
  EXPECT_EQ(done["kind"], "part of a folder");
  EXPECT_EQ(done["summary"], "written last: the folder is whole");
  EXPECT_EQ(done["part_of"], "trained heads");
  EXPECT_NE(inspect(folder / "heads/manifest.yaml")["summary"], done["summary"]);
  write_file(folder / "DONE", "");
  EXPECT_THROW(inspect(folder / "DONE"), UserError) << "of no folder of ours";
}

TEST(Inspect, PlainDecodingHasNoSpeedUp) {
  const fixtures::TempFolder folder;
  std::string comparison = fixtures::example_comparison();
  write_file(folder / "a", comparison);
  EXPECT_EQ(inspect(folder / "a")["summary"], "3 methods, largest speed-up 2.09 x");
  for (const std::string faster : {"1.931", "2.086"})
    comparison.replace(comparison.find(faster), faster.size(), "0.9");
  write_file(folder / "a", comparison);
  EXPECT_EQ(inspect(folder / "a")["summary"], "3 methods, largest speed-up 0.90 x");
}

TEST(Inspect, PromptsAreCountedWithTheirTurns) {
  const fixtures::TempFolder folder;
  write_file(folder / "a",
             "{\"id\": \"1\", \"text\": \"Hello\"}\n{\"turns\": [\"a\", \"b\", \"c\"]}\n");
  const auto found = inspect(folder / "a");
  EXPECT_EQ(found["kind"], "prompts");
  EXPECT_EQ(found["prompts"], 2);
  EXPECT_EQ(found["later_turns"], 2);
  write_file(folder / "b.json", "[\n{\"prompt\": \"One\"}, {\"prompt\": \"Two\"}\n]");
  EXPECT_EQ(inspect(folder / "b.json")["prompts"], 2);
  write_file(folder / "c.json", "[[{\"role\": \"user\", \"content\": \"One\"}]]");
  EXPECT_EQ(inspect(folder / "c.json")["prompts"], 1);
  for (const char* text : {"[1, 2]", "[[0], [0, 1]]", "[]", "[{\"name\": 1}]", "[{\"prompt\": "}) {
    write_file(folder / "d.json", text);
    EXPECT_THROW(inspect(folder / "d.json"), UserError) << text;
  }
}

TEST(Inspect, APageIsKnownByItsMark) {
  const fixtures::TempFolder folder;
  write_file(folder / "a", html_page("Bench of x", "", ""));
  EXPECT_EQ(inspect(folder / "a")["kind"], "page");
  EXPECT_EQ(inspect(folder / "a")["title"], "Bench of x");
  write_file(folder / "b", "<!DOCTYPE html>\n<title>Another's</title>\n");
  EXPECT_THROW(inspect(folder / "b"), UserError);
}

TEST(Inspect, ARunFolderListsWhatIsDamagedToo) {
  const fixtures::TempFolder folder;
  write_file(folder / "compare.json", R"({"methods": [{}]})");
  const auto found = inspect(folder.path());
  EXPECT_EQ(found["contents"][0]["summary"].get<std::string>().substr(0, 9), "damaged: ");
}

TEST(Inspect, TheGgufOfTheTinyModelIsDescribed) {
  const auto found = inspect(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf");
  EXPECT_EQ(found["kind"], "GGUF file");
  EXPECT_GT(found["num_parameters"].get<int64_t>(), 0);
  EXPECT_EQ(found["model"]["architecture"], "llama");
}

TEST(InspectionText, AlignsValuesGroupsAndTables) {
  const nlohmann::ordered_json inspection = {
      {"kind", "thing"},
      {"path", "x"},
      {"summary", "short"},
      {"num_heads", 4},
      {"size_bytes", 1500},
      {"complete", true},
      {"share", 0.25},
      {"made_from", {{"backbone", "sha256:aa"}}},
      {"rows", {{{"name", "a"}, {"count", 5}}, {{"name", "bcd"}, {"count", 12}}}},
      {"settings", "a: 1\nb: 2\n"}};
  EXPECT_EQ(inspection_text(inspection),
            "thing: x\nshort\n\n"
            "heads     4\nsize      1.5 kB\ncomplete  yes\nshare     0.25\n"
            "\nmade from\n  backbone  sha256:aa\n"
            "\nrows\n  name  count\n  a         5\n  bcd      12\n"
            "\nsettings\n  a: 1\n  b: 2\n");
}

TEST(InspectionText, CutsLongTablesAndSaysSo) {
  nlohmann::ordered_json inspection{{"kind", "k"}, {"path", "p"}};
  for (int i = 0; i < 100; ++i) inspection["rows"].push_back({{"i", i}});
  const std::string text = inspection_text(inspection);
  EXPECT_NE(text.find("… 60 more; --json lists all\n"), std::string::npos);
  EXPECT_EQ(text.find("\n  40\n"), std::string::npos);
}

TEST(Inspect, ACheckpointSaysHowFarItIsAndWhetherItIsWhole) {
  const fixtures::TempFolder folder;
  at::Tensor weight = at::zeros({6});
  AdamW optimizer({{"weight", weight}});
  weight.mutable_grad() = at::ones_like(weight);
  optimizer.step(0.1, 0, 1);
  const auto place = folder / "checkpoint";
  save_checkpoint(place, {"seed=1", "train.epochs=2"}, {{"weight", weight}}, optimizer);
  const auto found = inspect(place);
  EXPECT_EQ(found["kind"], "training checkpoint");
  EXPECT_EQ(found["summary"], "after 1 optimizer steps");
  EXPECT_EQ(found["made_with"]["train.epochs"], "2");
  EXPECT_EQ(found["num_parameters"], 18) << "with two moments each";

  std::string state = read_file(place / "state.safetensors");
  state.back() = static_cast<char>(state.back() ^ 1);
  write_file(place / "state.safetensors", state);
  const std::string altered = fixtures::error_text(folder, [&] { inspect(place); });
  EXPECT_TRUE(altered.starts_with("<>/checkpoint/state.safetensors: has the fingerprint "))
      << altered;
  const std::string listed = inspect(folder.path())["contents"][0]["summary"];
  EXPECT_TRUE(listed.starts_with("damaged: ")) << listed;
}

TEST(Inspect, ACheckpointThatIsNoneOfOursIsAnErrorOfTheUser) {
  const fixtures::TempFolder folder;
  const auto place = folder / "checkpoint";
  make_folder(place);
  write_file(place / "DONE", "");
  for (const char* text :
       {"5\n", "", "[1, 2]\n", "- run\n", "format: medusa-train-checkpoint\nstep: 1\n",
        "format: medusa-train-checkpoint\nstep: [1]\nrun: 3\n",
        "format: {a: b}\nrun: []\nstep: 1\n",
        "format: medusa-train-checkpoint\nstep: x\nrun: [{a: b}]\n", "{a: *b}\n", "a: [\n"}) {
    write_file(place / "checkpoint.yaml", text);
    EXPECT_NE(fixtures::error_text([&] { inspect(place); }), "(no error)") << text;
  }
}

}  // namespace
}  // namespace medusa
