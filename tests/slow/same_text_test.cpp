// On the demo's model, every drafter gives the text of plain decoding: 32 questions, greedy; and
// sampled, for five seeds. Plain decoding takes one question at a time, the drafters eight, so
// neighbors are no excuse either. Takes an hour.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>

#include "backbone/cpu/cpu_kernels.h"
#include "base/yaml_fields.h"
#include "infer/decoder.h"
#include "infer/drafters/text_store.h"
#include "runtime/drafting.h"
#include "tests/base/temp_folder.h"
#include "tools/bench/bench.h"
#include "tools/bench/rounds.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = MEDUSA_SOURCE_DIR;
const fs::path kModel = kRoot / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
const fs::path kRun = kRoot / "runs/demo";  // of tools/demo.sh

constexpr int64_t kSlots = 8;  // sequences that are decoded together

/// All that the project ships.
std::vector<Prompt> all_questions(const Model& model) {
  std::vector<Prompt> all;
  for (const char* file : {"bench_questions.jsonl", "demo_questions.jsonl"})
    for (Prompt& each : fitting_questions(read_prompts(kRoot / "configs" / file).prompts, 0, model))
      all.push_back(std::move(each));
  return all;
}

/// What decides a text besides the drafter.
struct Setting {
  double temperature = 0;
  uint64_t seed = 1;
  int32_t max_new_tokens = 128;

  auto operator<=>(const Setting&) const = default;
};

struct Texts {
  std::vector<std::vector<TokenId>> tokens;  // one list a question
  int64_t accepted = 0;                      // candidates the rule let stand
};

/// The model in one dtype on one ISA, and what plain decoding says.
class Bed {
 public:
  Bed(const std::string& dtype, CpuIsa isa)
      : config_(read_config<RunConfig>(
            YamlFile(kRoot / "configs/demo.yaml",
                     {"run=" + kRun.string(), "backbone.model=" + kModel.string(),
                      "backbone.dtype=" + dtype, "backbone.cpu=" + enum_name(isa)}))),
        model_(open_model(config_.backbone)),
        target_(*model_.llama, kSlots, model_.context),
        questions_(all_questions(model_)) {}

  size_t num_questions() const { return questions_.size(); }

  /// A drafter, ready to run; none: its heads or tree are not there.
  std::optional<Method> method(DrafterKind kind, double temperature) {
    InferConfig infer = config_.generate.infer;
    infer.drafter = kind;
    infer.sampling.temperature = temperature;
    const DraftNeeds needs = needs_of(infer);
    if (needs.heads && !fs::exists(kRun / "heads")) return std::nullopt;
    if (needs.tree && !fs::exists(config_.tree_file())) return std::nullopt;
    if (needs.eagle3 && !fs::exists(config_.eagle3_folder())) return std::nullopt;
    if (needs.draft) infer.draft_model.model = kModel.string();  // the target drafts for itself
    if (needs.skipping) infer.layer_skip.skip = {9, 14, 19};
    if (needs.store) infer.retrieval.store = store_file().string();
    // Rows cost nothing here, so that lookups propose on engines where they do not pay, too.
    drafting_ =
        load_drafting(config_.draft_files(), infer, model_, target_, std::make_shared<StepCost>());
    DraftParts parts = drafting_.parts();
    if (needs.shared) parts.shared = &answers();
    return make_method(infer, parts, target_);
  }

  /// Decodes questions first … first + count − 1 together.
  Texts decode_some(size_t first, size_t count, const Method& method, const Setting& setting) {
    Texts out;
    out.tokens.resize(count);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == count) return std::nullopt;
      std::vector<TokenId>& tokens = out.tokens[taken];
      DecodeRequest request;
      request.prompt = model_.encode(questions_[first + taken++].messages);
      request.limits = {.max_new_tokens = setting.max_new_tokens, .eos = model_.eos};
      request.random = Random(setting.seed);
      request.emit = [&tokens](const EmittedToken& token) {
        tokens.push_back(token.id);
        return true;
      };
      return request;
    };
    decode(*method.decoder, next, [&](size_t, const DecodeStats& stats) {
      out.accepted += stats.accepted;
      return true;
    });
    return out;
  }

  const std::vector<TokenId>& plain(size_t question, const Setting& setting) {
    const auto [known, added] = plain_.try_emplace({question, setting});
    if (added) {
      InferConfig infer;
      infer.drafter = DrafterKind::None;
      infer.sampling.temperature = setting.temperature;
      known->second =
          decode_some(question, 1, make_method(infer, {}, target_), setting).tokens.front();
    }
    return known->second;
  }

 private:
  /// Texts to look up: what plain decoding said to a few of the questions.
  const fs::path& store_file() {
    if (!folder_) {
      TextStoreWriter writer;
      for (size_t question = 0; question < 4; ++question)
        writer.add(plain(question, {.max_new_tokens = 32}));
      folder_.emplace();
      store_ = *folder_ / "store";
      writer.write(store_, {model_.tokenizer->fingerprint(), "", "training"});
    }
    return store_;
  }

  /// The same as answers of a server.
  SharedTexts& answers() {
    if (shared_.use().texts > 0) return shared_;
    for (size_t question = 0; question < 4; ++question) {
      std::vector<TokenId> text = model_.encode(questions_[question].messages);
      for (const TokenId token : plain(question, {.max_new_tokens = 32})) text.push_back(token);
      shared_.add(std::move(text));
    }
    return shared_;
  }

  SharedTexts shared_{1 << 24};
  RunConfig config_;
  Model model_;
  BackboneTarget target_;
  std::vector<Prompt> questions_;
  LoadedDrafting drafting_;
  std::map<std::pair<size_t, Setting>, std::vector<TokenId>> plain_;
  std::optional<fixtures::TempFolder> folder_;
  fs::path store_;
};

Bed& bed(const std::string& dtype, CpuIsa isa) {
  static std::map<std::pair<std::string, CpuIsa>, std::unique_ptr<Bed>> beds;
  std::unique_ptr<Bed>& found = beds[{dtype, isa}];
  if (!found) found = std::make_unique<Bed>(dtype, isa);
  return *found;
}

class SameText : public testing::TestWithParam<DrafterKind> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(kModel)) << "no " << kModel << "; tools/get_demo_model.sh gets it";
  }

  void expect_plain(const std::string& dtype, size_t num_questions, const Setting& setting,
                    CpuIsa isa = CpuIsa::Auto) {
    Bed& on = bed(dtype, isa);
    const std::optional<Method> method = on.method(GetParam(), setting.temperature);
    ASSERT_TRUE(method) << enum_name(GetParam()) << " needs heads and perhaps a tree in " << kRun
                        << "; tools/demo.sh makes them";
    const size_t count = std::min(num_questions, on.num_questions());
    const Texts drafted = on.decode_some(0, count, *method, setting);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(drafted.tokens[i], on.plain(i, setting)) << "question " << i;
    if (GetParam() != DrafterKind::None) {
      EXPECT_GT(drafted.accepted, 0) << "it was never right: nothing was tested";
    }
  }
};

std::vector<DrafterKind> all_drafters() {
  std::vector<DrafterKind> out;
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values) out.push_back(kind);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SameText, testing::ValuesIn(all_drafters()),
                         [](const auto& each) { return enum_name(each.param); });

TEST_P(SameText, GreedyInTheDefaultDtype) { expect_plain("auto", 32, {}); }

TEST_P(SameText, GreedyInFloat32) { expect_plain("float32", 32, {}); }

TEST_P(SameText, GreedyOnEveryIsa) {
  for (const auto& [name, isa] : EnumNames<CpuIsa>::values)
    for (const bool quantized : {false, true}) {
      if (isa == CpuIsa::Auto || kernels_for(isa, quantized) == nullptr) continue;
      SCOPED_TRACE(name);
      expect_plain(quantized ? "stored" : "bfloat16", 4, {.max_new_tokens = 48}, isa);
    }
}

TEST_P(SameText, SampledForFiveSeeds) {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    expect_plain("auto", 4, {.temperature = 0.7, .seed = seed, .max_new_tokens = 64});
}

}  // namespace
}  // namespace medusa
