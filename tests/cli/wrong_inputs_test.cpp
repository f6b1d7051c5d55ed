// What a user can get wrong: the whole message, exit code 2, and nothing that existed is touched.
#include <sys/mount.h>
#include <unistd.h>

#include "../base/gguf_builder.h"
#include "program.h"

namespace medusa::cli {
namespace {

void expect_refused(const ProcessResult& ran, const std::string& message) {
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  const std::string last = ran.err.substr(
      ran.err.rfind("medusa: ") == std::string::npos ? 0 : ran.err.rfind("medusa: "));
  EXPECT_EQ(last, "medusa: " + message + "\n");
}

struct Setting {
  std::string set;
  std::string message;
};

TEST(WrongInputs, SettingsNameTheirPlaceAndTheNearestKey) {
  const CliFixture place;
  const std::vector<Setting> wrong = {
      {"train.learning_rte=0.1",
       "--set train.learning_rte=0.1: unknown key 'learning_rte' in 'train' (did you mean "
       "'learning_rate'?); correct or remove it"},
      {"train.epochs=two",
       "--set train.epochs=two: 'epochs' is 'two', must be a whole number; correct or remove it"},
      {"train.epochs=0",
       "--set train.epochs=0: 'epochs' is 0, must be from 1 to 10000; correct or remove it"},
      {"train.epochs=2147483648",
       "--set train.epochs=2147483648: 'epochs' is 2147483648, must be from 1 to 10000; correct or "
       "remove it"},
      {"generate.top_p=1.5",
       "--set generate.top_p=1.5: 'top_p' is 1.5, must be > 0 and <= 1; correct or remove it"},
      {"backbone.dtype=float16",
       "--set backbone.dtype=float16: 'dtype' is 'float16', must be one of auto | float32 | "
       "bfloat16 | int8 | stored; correct or remove it"},
      {"backbone.cpu=avx",
       "--set backbone.cpu=avx: 'cpu' is 'avx', must be one of auto | amx | avx512_bf16 | avx512 | "
       "avx2 | plain; correct or remove it"},
      {"train.epochs",
       "--set train.epochs: has no key before a '=', expected section.key=value; write it as in "
       "--set train.epochs=2"},
  };
  for (const Setting& each : wrong)
    expect_refused(place.run("train --config run.yaml --set '" + each.set + "'"), each.message);
}

TEST(WrongInputs, YamlNamesFileAndLine) {
  const CliFixture place;
  write_text(place / "twice.yaml", "backbone:\n  model: x\n  model: y\n");
  expect_refused(place.run("train --config twice.yaml"),
                 "twice.yaml:3: key 'model' is given twice; correct or remove it");
  expect_refused(place.run("train --config missing.yaml"),
                 "missing.yaml: no such file; check the path");
  write_text(place / "none.yaml", "run: runs/x\n");
  expect_refused(place.run("train --config none.yaml"),
                 "no model is named, expected a .gguf file or a model folder; name it with "
                 "--model, or set backbone.model in the YAML");
}

TEST(WrongInputs, FilesWithoutAName) {
  const CliFixture place;
  for (const std::string command :
       {"generate hi --config ''", "generate --config run.yaml --questions ''",
        "train --config run.yaml --run ''"}) {
    const ProcessResult ran = place.run(command);
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find(" is '', expected the name of a file or folder; correct it"),
              std::string::npos)
        << ran.err;
  }
}

TEST(WrongInputs, RulesThatCannotWorkAtATemperature) {
  const CliFixture place;
  expect_refused(place.run("generate --config run.yaml --prompt x --set generate.rule=match"),
                 "rule 'match' with temperature 0, expected a temperature above 0; use rule "
                 "'greedy' for the most probable text");
}

TEST(WrongInputs, CudaWithoutAGpu) {
  if (std::system("nvidia-smi >/dev/null 2>&1") == 0) GTEST_SKIP() << "a GPU is there";
  const CliFixture place;
  expect_refused(place.run("generate --config run.yaml --prompt x --device cuda"),
                 "backbone.device is 'cuda', found no usable GPU, expected one with its driver; "
                 "use --device cpu or install LibTorch's CUDA libraries");
}

TEST(WrongInputs, AnIsaOfTheCpuThatCannotComputeThisRun) {
  const CliFixture place;
  const std::string generate = "generate --config run.yaml --prompt x --set backbone.cpu=plain ";
  expect_refused(place.run(generate + "--dtype float32"),
                 "backbone.cpu is 'plain' and the dtype float32, which LibTorch multiplies, "
                 "expected bfloat16, int8 or stored; use --dtype bfloat16, or leave backbone.cpu "
                 "out");
  expect_refused(place.run(generate),
                 "backbone.cpu is 'plain', found a model with states of 64 and heads of 8 numbers, "
                 "expected multiples of 32, as only these run on our kernels; leave backbone.cpu "
                 "out for LibTorch's");
}

TEST(WrongInputs, ModelsThatAreNone) {
  const CliFixture place;
  write_text(place / "empty.gguf", "");
  expect_refused(place.run("generate --config run.yaml --prompt x --set backbone.model=empty.gguf"),
                 "empty.gguf: the file is empty; copy or download it again");
  const ProcessResult foreign =
      place.run("generate --config run.yaml --prompt x --set backbone.model=prompts.jsonl");
  EXPECT_EQ(foreign.status, 2) << foreign.err;
  const ProcessResult missing =
      place.run("generate --config run.yaml --prompt x --set backbone.model=nowhere.gguf");
  EXPECT_EQ(missing.status, 2) << missing.err;
  EXPECT_NE(missing.err.find("nowhere.gguf"), std::string::npos) << missing.err;
}

TEST(WrongInputs, PromptsThatAreNone) {
  const CliFixture place;
  expect_refused(place.run("generate --config run.yaml --set generate.drafter=none"),
                 "generate: no prompt given, expected one behind the model, --prompt TEXT, "
                 "--questions FILE, or - for standard input; see medusa generate --help");
  for (const char* bad : {"{\"text\": 7}\n", "not json\n", "{\"id\": \"a\"}\n", ""}) {
    write_text(
        place / "bad.jsonl",
        std::string("{\"text\": \"fine\"}\n").substr(0, *bad == '\0' ? 0 : std::string::npos) +
            bad);
    const ProcessResult ran =
        place.run("distill --config run.yaml --set 'distill.prompts=[bad.jsonl]'");
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_NE(ran.err.find(*bad == '\0' ? "bad.jsonl" : "bad.jsonl:2: "), std::string::npos)
        << ran.err;
    EXPECT_FALSE(std::filesystem::exists(place / "runs/tiny/dataset/shard-00000.h5"));
  }
}

TEST(WrongInputs, LongPromptsAreSkippedCountedAndTold) {
  const CliFixture place;
  std::string story = "{\"text\": \"";
  for (int i = 0; i < 400; ++i) story += "one day ";
  write_text(place / "long.jsonl", story + "\"}\n{\"text\": \"Once\"}\n");
  const ProcessResult ran =
      place.run("distill --config run.yaml --set 'distill.prompts=[long.jsonl]'");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("1 prompts do not fit into the context and are skipped"),
            std::string::npos)
      << ran.err;
}

TEST(WrongInputs, ArtifactsOfAnotherModelOrRun) {
  const CliFixture place;
  for (const char* stage : {"distill", "train", "calibrate"})
    ASSERT_EQ(place.run(std::string(stage) + " --config run.yaml").status, 0);
  const std::string shard = file_text(place / "runs/tiny/dataset/shard-00000.h5");

  // The same weights in another file are another model: fingerprints are compared, not names.
  fixtures::GgufBuilder(GgufFile(CliFixture::model()))
      .set("general.name", "another")
      .write(place / "other.gguf");
  const ProcessResult train =
      place.run("train --config run.yaml --set backbone.model=other.gguf --set run=runs/tiny");
  EXPECT_EQ(train.status, 2);
  EXPECT_NE(train.err.find("backbone"), std::string::npos) << train.err;

  const ProcessResult other_settings =
      place.run("distill --config run.yaml --set distill.temperature=0.1");
  EXPECT_EQ(other_settings.status, 2) << other_settings.err;
  EXPECT_EQ(file_text(place / "runs/tiny/dataset/shard-00000.h5"), shard);

  write_text(
      place / "deep.yaml",
      "format: medusa-choice-tree\nversion: 1\ntop_k: 5\nnodes:\n  - [0]\n  - [0, 0]\n  - [0, 0, "
      "0]\n");
  const ProcessResult deep =
      place.run("generate --config run.yaml --prompt x --set generate.tree=deep.yaml");
  EXPECT_EQ(deep.status, 2);
  EXPECT_NE(deep.err.find("deep.yaml"), std::string::npos) << deep.err;
  write_text(place / "gap.yaml",
             "format: medusa-choice-tree\nversion: 1\ntop_k: 5\nnodes:\n  - [0]\n  - [1, 0]\n");
  expect_refused(
      place.run("generate --config run.yaml --prompt x --set generate.tree=gap.yaml"),
      "gap.yaml:6: path [1, 0] is listed but its prefix [1] is not; add it or remove the path");

  std::filesystem::remove(place / "runs/tiny/heads/DONE");
  const ProcessResult undone = place.run("generate --config run.yaml --prompt x");
  EXPECT_EQ(undone.status, 2);
  EXPECT_NE(undone.err.find("DONE"), std::string::npos) << undone.err;
}

TEST(WrongInputs, AFullDiskLosesNothing) {
  const CliFixture place;
  const auto disk = place / "disk";
  std::filesystem::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=48k") != 0)
    GTEST_SKIP() << "no right to mount";
  const ProcessResult ran = place.run("distill --config run.yaml --set run=disk/tiny");
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(
      ran.err.find(
          "the disk is full; free some space or choose another output folder, then run again"),
      std::string::npos)
      << ran.err;
  umount(disk.c_str());
}

TEST(WrongInputs, AnOutputFolderThatCannotBeWritten) {
  const CliFixture place;
  write_text(place / "file", "in the way");
  const ProcessResult ran = place.run("distill --config run.yaml --set run=file");
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(file_text(place / "file"), "in the way");
}

}  // namespace
}  // namespace medusa::cli
