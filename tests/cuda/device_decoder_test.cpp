#include "infer/cuda/device_decoder.h"

#include "backbone/llama.h"
#include "base/error.h"
#include "infer/drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/typical_rule.h"
#include "tests/cuda/device_models.h"
#include "tests/cuda/every_device.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

constexpr int64_t kTopK = 4;
constexpr int64_t kRows = 300;  // of a sequence

/// What became of some requests.
struct Texts {
  std::vector<std::vector<TokenId>> tokens;  // [requests]
  std::vector<DecodeStats> stats;
  std::vector<size_t> order;  // in which they ended
};

/// The eager loop's side of DeviceHeads, so that both loops propose the same trees.
class SameTreeDrafter : public Drafter {
 public:
  SameTreeDrafter(DeviceHeads& heads, const TreeShape& shape) : heads_(heads), shape_(shape) {}

  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    const auto n = static_cast<int64_t>(shape_.depths.size());
    if (!context.hidden.defined() || context.max_nodes < n) return root_only(context.tokens.back());
    const at::Device device = context.hidden.device();
    const at::Tensor root = at::full({1}, context.tokens.back(), at::kInt).to(device);
    const at::Tensor tokens = at::zeros({n}, at::kInt).to(device);
    const at::Tensor state = context.hidden.contiguous();
    heads_.fill(static_cast<const Bf16*>(state.data_ptr()),
                static_cast<const int32_t*>(root.data_ptr()), 1,
                static_cast<int32_t*>(tokens.data_ptr()), nullptr);
    const at::Tensor host = tokens.cpu();
    const auto* from = host.const_data_ptr<int32_t>();
    return {{from, from + n}, shape_.parents, static_cast<int32_t>(n), {}};
  }

 private:
  DeviceHeads& heads_;
  const TreeShape& shape_;
};

class DeviceDecoderTest : public OnEveryDevice {
 protected:
  DeviceDecoderTest()
      : shape_(make_choice_tree({{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}}, 4, "test")
                   .shape()) {}

  void SetUp() override {
    OnEveryDevice::SetUp();
    if (IsSkipped()) return;
    weights_ = device_weights(1, device_config(), device());
    llama_ = std::make_unique<Llama>(llama_on_kernels(weights_));
  }

  /// Heads that are often right: near the LM head, which itself repeats itself on a tiny model.
  MedusaHeads heads(HeadInput input) const {
    return random_heads(heads_config(input, HeadOutput::Shared),
                        tiny_weights(1, device_config(), at::kBFloat16));
  }

  static std::vector<DecodeRequest> requests(int32_t count, int32_t max_new_tokens) {
    std::vector<DecodeRequest> out;
    for (int32_t i = 0; i < count; ++i) {
      DecodeRequest request;
      request.prompt = random_tokens(static_cast<uint64_t>(40 + i), 1 + 9 * (i % 4));
      request.limits.max_new_tokens = max_new_tokens + 3 * (i % 3);
      request.random = Random(99).child(static_cast<uint64_t>(i));
      out.push_back(std::move(request));
    }
    return out;
  }

  using Loop = std::function<DecodeTimes(const std::function<std::optional<DecodeRequest>()>&,
                                         const std::function<bool(size_t, const DecodeStats&)>&)>;

  static Texts run(std::vector<DecodeRequest> list, const Loop& loop) {
    Texts texts;
    texts.tokens.resize(list.size());
    texts.stats.resize(list.size());
    std::vector<int64_t> begun(list.size());  // steps
    for (size_t i = 0; i < list.size(); ++i) {
      const auto keep = list[i].emit;
      list[i].emit = [&texts, &begun, i, keep](const EmittedToken& token) {
        texts.tokens[i].push_back(token.id);
        begun[i] += token.begins_step ? 1 : 0;
        return !keep || keep(token);
      };
    }
    size_t given = 0;
    loop(
        [&]() -> std::optional<DecodeRequest> {
          if (given == list.size()) return std::nullopt;
          return std::move(list[given++]);
        },
        [&](size_t i, const DecodeStats& stats) {
          texts.stats[i] = stats;
          EXPECT_EQ(begun[i], stats.steps) << i;
          texts.order.push_back(i);
          return true;
        });
    return texts;
  }

  Texts eager(const std::vector<DecodeRequest>& list, const AcceptanceRule& rule,
              DeviceHeads* heads = nullptr) {
    BackboneTarget target(*llama_, 1, kRows);
    if (heads != nullptr) heads->reserve(1);
    const DrafterFactory make = [&]() -> std::unique_ptr<Drafter> {
      if (heads == nullptr) return std::make_unique<NoneDrafter>();
      return std::make_unique<SameTreeDrafter>(*heads, shape_);
    };
    return run(list, [&](const auto& next, const auto& finished) {
      return decode(target, rule, make, next, finished);
    });
  }

  std::unique_ptr<DeviceHeads> device_heads(const MedusaHeads& heads) const {
    return std::make_unique<DeviceHeads>(heads, weights_, shape_, kTopK, *loop_kernels().heads,
                                         *kernels().gemms, pick_with(*loop_kernels().steps));
  }

  Texts graphed(const std::vector<DecodeRequest>& list, const VerifyParameters& verify,
                DeviceHeads* heads, int32_t slots) {
    BackboneTarget target(*llama_, slots, kRows);
    DeviceDecoder decoder(target, {std::shared_ptr<void>(), heads}, shape_, verify, loop_kernels());
    Texts texts = run(list, [&](const auto& next, const auto& finished) {
      return decode(decoder, next, finished);
    });
    EXPECT_EQ(target.num_free_slots(), slots);
    graphs_ = decoder.graphs();
    for (const CapturedGraph& each : graphs_) num_kernels_ = decoder.num_kernels(each);
    return texts;
  }

  TreeShape shape_;
  Weights weights_;
  std::unique_ptr<Llama> llama_;
  std::vector<CapturedGraph> graphs_;  // of the last graphed()
  int64_t num_kernels_ = 0;            // of its last graph
};

TEST_P(DeviceDecoderTest, PlainGreedyTextIsTheEagerLoops) {
  const auto list = requests(3, 10);
  const Texts expected = eager(list, GreedyRule()), texts = graphed(list, {}, nullptr, 1);
  EXPECT_EQ(texts.tokens, expected.tokens);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(texts.stats[i].finish, FinishReason::Length);
    EXPECT_EQ(texts.stats[i].emitted, expected.stats[i].emitted);
    EXPECT_EQ(texts.stats[i].steps, expected.stats[i].steps);
    EXPECT_EQ(texts.stats[i].emitted_per_step, expected.stats[i].emitted_per_step);
  }
  EXPECT_EQ(graphs_, (std::vector<CapturedGraph>{{1, 1, 256}}));
  EXPECT_GE(num_kernels_, 2 * 8) << "two layers";
}

TEST_P(DeviceDecoderTest, GreedyTextWithHeadsIsPlainText) {
  const auto list = requests(3, 9);
  const Texts expected = eager(list, GreedyRule());
  for (const HeadInput input : {HeadInput::Hidden, HeadInput::Root, HeadInput::Sequential}) {
    const auto heads = device_heads(this->heads(input));
    const Texts texts = graphed(list, {}, heads.get(), 1);
    EXPECT_EQ(texts.tokens, expected.tokens);
    EXPECT_EQ(texts.stats[0].proposed, texts.stats[0].steps * 7);
  }
  EXPECT_EQ(graphs_, (std::vector<CapturedGraph>{{1, 8, 256}}));
}

TEST_P(DeviceDecoderTest, SequencesOfABatchHaveTheTextsTheyHaveAlone) {
  const auto list = requests(5, 6);
  const auto heads = device_heads(this->heads(HeadInput::Root));
  const Texts alone = graphed(list, {}, heads.get(), 1),
              together = graphed(list, {}, heads.get(), 3);
  EXPECT_EQ(together.tokens, alone.tokens);
  EXPECT_EQ(together.order.size(), list.size());
  EXPECT_GE(graphs_.size(), 2U) << "one for each number of sequences that ran twice";
}

TEST_P(DeviceDecoderTest, SampledTextIsThatOfTheSeed) {
  const auto list = requests(3, 9);
  SamplingConfig sampling;
  sampling.temperature = 0.8;
  const Texts expected = eager(list, MatchRule(sampling));
  const auto heads = device_heads(this->heads(HeadInput::Root));
  const VerifyParameters verify{DeviceRule::Match, 0.8};
  EXPECT_EQ(graphed(list, verify, nullptr, 2).tokens, expected.tokens);
  EXPECT_EQ(graphed(list, verify, heads.get(), 2).tokens, expected.tokens);
}

TEST_P(DeviceDecoderTest, FilteredTextIsThatOfTheSeed) {
  const auto list = requests(2, 4);
  const auto heads = device_heads(this->heads(HeadInput::Root));
  const SamplingConfig sampling{.temperature = 0.9, .top_k = 12, .top_p = 0.8, .min_p = 0.02};
  const VerifyParameters verify{
      .rule = DeviceRule::Match, .temperature = 0.9, .filter = {12, 0.8, 0.02F}};
  EXPECT_EQ(graphed(list, verify, heads.get(), 2).tokens, eager(list, MatchRule(sampling)).tokens);
}

TEST_P(DeviceDecoderTest, TypicalAcceptanceTakesTheEagerLoopsPaths) {
  auto list = requests(3, 10);
  list[0].prompt =
      random_tokens(9, 2);  // of one token, the device's heads begin at a state of zeros
  const auto heads = device_heads(this->heads(HeadInput::Root));
  for (const double temperature : {0.0, 0.7}) {
    SamplingConfig sampling;
    sampling.temperature = temperature;
    const Texts expected = eager(list, TypicalRule({0.02, 0.1}, sampling), heads.get());
    const Texts texts =
        graphed(list, {DeviceRule::Typical, temperature, 0.02, 0.1}, heads.get(), 1);
    EXPECT_EQ(texts.tokens, expected.tokens);
    int64_t accepted = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      accepted += texts.stats[i].accepted;
      EXPECT_EQ(texts.stats[i].emitted_per_step, expected.stats[i].emitted_per_step) << i;
    }
    EXPECT_GT(accepted, 0) << "or nothing was tested";
  }
}

TEST_P(DeviceDecoderTest, ATextEndsAtEosAndWhereItIsUnwanted) {
  auto list = requests(3, 10);
  const Texts whole = graphed(list, {}, nullptr, 2);
  list[0].limits.eos = {whole.tokens[0][4]};
  int left = 6;
  list[1].emit = [&left](const EmittedToken& token) {
    EXPECT_EQ(token.output, nullptr);
    return --left > 0;
  };
  const auto heads = device_heads(this->heads(HeadInput::Hidden));
  const Texts texts = graphed(list, {}, heads.get(), 2);
  const auto& first = whole.tokens[0];
  const auto end = std::find(first.begin(), first.end(), first[4]) + 1;
  EXPECT_EQ(texts.tokens[0], (std::vector<TokenId>(first.begin(), end)));
  EXPECT_EQ(texts.stats[0].finish, FinishReason::Eos);
  EXPECT_EQ(texts.tokens[1],
            (std::vector<TokenId>(whole.tokens[1].begin(), whole.tokens[1].begin() + 6)));
  EXPECT_EQ(texts.stats[1].finish, FinishReason::Stopped);
  EXPECT_EQ(texts.tokens[2], whole.tokens[2]);
}

TEST_P(DeviceDecoderTest, ATextMayFillTheCache) {
  DecodeRequest request;
  request.prompt = random_tokens(50, kRows - 6);
  request.limits.max_new_tokens = 50;
  const Texts expected = eager({request}, GreedyRule());
  const auto heads = device_heads(this->heads(HeadInput::Root));
  const Texts texts = graphed({request}, {}, heads.get(), 1);
  EXPECT_EQ(texts.tokens, expected.tokens);
  EXPECT_EQ(texts.stats[0].finish, FinishReason::Context);
  EXPECT_EQ(graphs_, (std::vector<CapturedGraph>{{1, 8, 512}}));
}

TEST_P(DeviceDecoderTest, ALongPromptBetweenStepsMovesBuffersAndGraphsAreMadeAgain) {
  auto list = requests(3, 6);
  list[2].prompt = random_tokens(60, 200);  // prefilled in chunks of more rows than a step has
  const Texts expected = eager(list, GreedyRule());
  EXPECT_EQ(graphed(list, {}, nullptr, 2).tokens, expected.tokens);
}

TEST_P(DeviceDecoderTest, AFailedRequestClosesAllSlots) {
  BackboneTarget target(*llama_, 2, kRows);
  DeviceDecoder decoder(target, nullptr, shape_, {}, loop_kernels());
  auto list = requests(1, 8);
  list[0].emit = [](const EmittedToken&) { return true; };
  int given = 0;
  const auto next = [&]() -> std::optional<DecodeRequest> {
    if (given++ == 0) return list[0];
    return DecodeRequest{};  // no prompt
  };
  EXPECT_THROW(decode(decoder, next, [](size_t, const DecodeStats&) { return true; }), UserError);
  EXPECT_EQ(target.num_free_slots(), 2);
}

TEST_P(DeviceDecoderTest, ASequenceWhoseLogitsAreNotFiniteFailsAlone) {
  constexpr TokenId kDamaged = 5;
  auto list = requests(2, 8);
  const std::vector<TokenId> healthy = graphed({list[0]}, {}, nullptr, 1).tokens[0];
  for (const auto& tokens : {list[0].prompt, healthy})
    ASSERT_EQ(std::count(tokens.begin(), tokens.end(), kDamaged), 0) << "take another token";
  list[1].prompt = {7, 8, kDamaged};
  Weights damaged = weights_;
  damaged.embedding = weights_.embedding.clone();
  damaged.embedding[kDamaged].fill_(std::numeric_limits<float>::quiet_NaN());
  damaged.lm_head = weights_.lm_head.clone();
  llama_ = std::make_unique<Llama>(llama_on_kernels(damaged));
  const auto heads = device_heads(this->heads(HeadInput::Root));
  BackboneTarget target(*llama_, 2, kRows);
  DeviceDecoder decoder(target, {std::shared_ptr<void>(), heads.get()}, shape_, {}, loop_kernels());

  std::vector<TokenId> text;
  list[0].emit = [&](const EmittedToken& token) {
    text.push_back(token.id);
    return true;
  };
  list[1].emit = [](const EmittedToken&) {
    ADD_FAILURE() << "a token of no logits";
    return true;
  };
  const RequestId good = decoder.submit(list[0]), bad = decoder.submit(list[1]);
  std::vector<FinishedRequest> finished;
  for (int i = 0; i < 40 && finished.size() < 2; ++i)
    for (FinishedRequest& each : decoder.step()) finished.push_back(std::move(each));
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].id, bad);
  EXPECT_THROW(std::rethrow_exception(finished[0].error), UserError);
  EXPECT_EQ(finished[1].id, good);
  EXPECT_EQ(finished[1].error, nullptr);
  EXPECT_EQ(text, healthy);
  EXPECT_EQ(target.num_free_slots(), 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceDecoderTest, every_device(), device_name);

}  // namespace
}  // namespace medusa
