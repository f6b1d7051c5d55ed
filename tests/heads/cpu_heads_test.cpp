#include "heads/cpu/cpu_heads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backbone/cpu/threads/thread_pool.h"
#include "heads/heads_runner.h"
#include "heads/reference_heads.h"
#include "tests/backbone/cpu_isas.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

constexpr int64_t kNumHeads = 3;
constexpr int64_t kVocab = 130;

/// Drafts of positions [first, first + count) of a fixed text.
HeadDrafts draft(HeadsBackend& heads, const at::Tensor& hidden, int64_t first, int64_t count,
                 int64_t num_heads = kNumHeads) {
  const auto text = some_text(first + count + kNumHeads);
  HeadQuery query{.hidden = hidden.narrow(0, first, count),
                  .tokens = std::span(text).subspan(static_cast<size_t>(first))};
  query.num_positions = count;
  query.num_heads = num_heads;
  HeadDrafts drafts;
  heads.draft(query, drafts);
  return drafts;
}

/// [M, K', V] log-probabilities by token; 0 where one is not among the drafts.
at::Tensor by_token(const HeadDrafts& drafts) {
  at::Tensor out = at::zeros({drafts.size(), drafts.num_heads, kVocab});
  auto values = out.accessor<float, 3>();
  for (int64_t m = 0; m < drafts.size(); ++m)
    for (int64_t k = 0; k < drafts.num_heads; ++k)
      for (int64_t rank = 0; rank < drafts.top_k; ++rank)
        values[m][k][drafts.token(m, k, rank)] = drafts.log_prob(m, k, rank);
  return out;
}

/// Bit-equal drafts of the first heads at position m of one and position n of the other.
void expect_same(const HeadDrafts& a, int64_t m, const HeadDrafts& b, int64_t n) {
  ASSERT_EQ(a.top_k, b.top_k);
  for (int64_t k = 0; k < std::min(a.num_heads, b.num_heads); ++k)
    for (int64_t rank = 0; rank < a.top_k; ++rank) {
      ASSERT_EQ(a.token(m, k, rank), b.token(n, k, rank)) << m << ", head " << k;
      ASSERT_EQ(a.log_prob(m, k, rank), b.log_prob(n, k, rank)) << m << ", head " << k;
    }
}

/// Random heads of each kind over a bfloat16 backbone with H = 64: two pairs of outputs per head,
/// so that threads share heads.
class CpuHeadsTest : public testing::Test {
 protected:
  /// Calls test(heads, backbone, kernels) for every kind of heads and every ISA.
  template <typename Test>
  void for_each_kind(const Test& test) {
    for (const HeadsConfig& config : all_configs())
      for (const CpuKernels* kernels : pass_kernels()) {
        SCOPED_TRACE(describe(config) + kernels->name);
        const Weights& backbone = kernels->quantize == nullptr ? plain_ : blocks_;
        test(random_heads(config, backbone), backbone, *kernels);
        if (HasFatalFailure()) return;
      }
  }

  const Weights plain_ = tiny_weights(1, tiny_config(), at::kBFloat16);
  const Weights blocks_ = [] {
    Weights weights = tiny_weights(1, tiny_config(), at::kBFloat16);
    weights.kind = QuantKind::Stored;
    return weights;
  }();
  const std::shared_ptr<ThreadPool> pool_ = std::make_shared<ThreadPool>(1);
  const at::Tensor hidden_ = random_hidden(kVocab, at::kBFloat16);
};

/// How much further apart the two may be. Between the factors of a low-rank output rows are
/// rounded once more, to bfloat16 or to 8 bits: an element that was rounded to the other side
/// before then weighs more. Where LibTorch multiplies on AMX, it adds in yet another order.
float slack(const MedusaHeads& heads, const CpuKernels& kernels) {
  if (!is_low_rank(heads.config.output)) return 1.0F;
  return kernels.quantize != nullptr ? 4.0F : 2.0F;
}

TEST_F(CpuHeadsTest, LogProbabilitiesAreTheReferences) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const int64_t all = heads.output_rows();
    const auto fused = make_cpu_heads(heads, backbone, all, kernels, pool_);
    const auto same_matmuls = make_reference_heads(heads, backbone, all, Kernels::Auto);
    const auto plain = make_reference_heads(heads, backbone, all, Kernels::Reference);
    for (const int64_t count : {1, 3, 17}) {
      const at::Tensor found = by_token(draft(*fused, hidden_, 0, count));
      // Sums in another order: now and then a number is rounded to the other side.
      const at::Tensor close = found - by_token(draft(*same_matmuls, hidden_, 0, count));
      EXPECT_LT(close.abs().mean().item<float>(), 3e-4F * slack(heads, kernels));
      EXPECT_LT(close.abs().max().item<float>(), 0.02F * slack(heads, kernels));
      // LibTorch's GEMMs are rounded to bfloat16 themselves.
      const at::Tensor loose = found - by_token(draft(*plain, hidden_, 0, count));
      EXPECT_LT(loose.abs().mean().item<float>(), 0.03F);
      EXPECT_LT(loose.abs().max().item<float>(), 0.25F);
    }
  });
}

TEST_F(CpuHeadsTest, DraftsAreTheReferencesWhereMarginsAllow) {
  int64_t compared = 0, num_drafts = 0;
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto fused = make_cpu_heads(heads, backbone, 7, kernels, pool_);
    const auto plain = make_reference_heads(heads, backbone, 8, Kernels::Auto);
    const float margin = 0.02F * slack(heads, kernels);
    for (const int64_t count : {1, 3, 17}) {
      const HeadDrafts found = draft(*fused, hidden_, 0, count);
      const HeadDrafts expected = draft(*plain, hidden_, 0, count);
      ASSERT_EQ(found.size(), count);
      for (int64_t m = 0; m < count; ++m)
        for (int64_t k = 0; k < kNumHeads; ++k)
          for (int64_t rank = 0; rank < 7; ++rank, ++num_drafts) {
            const float wanted = expected.log_prob(m, k, rank);
            EXPECT_NEAR(found.log_prob(m, k, rank), wanted, margin / 2);
            if (wanted - expected.log_prob(m, k, rank + 1) < margin) continue;
            if (rank > 0 && expected.log_prob(m, k, rank - 1) - wanted < margin) continue;
            ++compared;
            EXPECT_EQ(found.token(m, k, rank), expected.token(m, k, rank))
                << m << ", head " << k << ", rank " << rank;
          }
    }
  });
  EXPECT_GT(compared, num_drafts / 2);
}

TEST_F(CpuHeadsTest, APositionIsTheSameBitsAloneAndBesideOthers) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto fused = make_cpu_heads(heads, backbone, 10, kernels, pool_);
    const HeadDrafts together = draft(*fused, hidden_, 0, 70);  // more than one parallel region
    for (const int64_t m : {0, 1, 15, 16, 40, 63, 64, 69})
      expect_same(draft(*fused, hidden_, m, 1), 0, together, m);
    const HeadDrafts some = draft(*fused, hidden_, 50, 17);
    for (int64_t m = 0; m < 17; ++m) expect_same(some, m, together, 50 + m);
  });
}

TEST_F(CpuHeadsTest, AHeadIsTheSameBitsWhateverHeadsAreAsked) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto fused = make_cpu_heads(heads, backbone, 10, kernels, pool_);
    for (const int64_t count : {1, 17}) {
      const HeadDrafts all = draft(*fused, hidden_, 0, count);
      for (int64_t num_heads = 1; num_heads <= kNumHeads; ++num_heads) {
        const HeadDrafts some = draft(*fused, hidden_, 0, count, num_heads);
        ASSERT_EQ(some.num_heads, num_heads);
        ASSERT_EQ(some.size(), count);
        for (int64_t m = 0; m < count; ++m) expect_same(some, m, all, m);
      }
    }
  });
}

/// Head k's drafts after M paths of k tokens below one root, all of them at the same state: as a
/// tree asks, or with the state said once for each path.
HeadDrafts draft_paths(HeadsBackend& heads, const at::Tensor& state, int64_t head,
                       const std::vector<TokenId>& rows, bool say_state_once) {
  HeadQuery query{.hidden = state.unsqueeze(0), .tokens = rows, .stride = 1 + head};
  query.num_positions = static_cast<int64_t>(rows.size()) / query.stride;
  if (!say_state_once) query.hidden = query.hidden.expand({query.num_positions, -1});
  query.first_head = head;
  query.num_heads = 1;
  HeadDrafts drafts;
  heads.draft(query, drafts);
  return drafts;
}

TEST_F(CpuHeadsTest, PathsOfOneRootAreTheSameBitsWhateverTheyShare) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto fused = make_cpu_heads(heads, backbone, 10, kernels, pool_);
    for (int64_t head = 0; head < kNumHeads; ++head) {
      std::vector<TokenId> rows;  // the same root, then all kinds of paths
      const int64_t num_paths = head == 0 ? 1 : 70;
      for (int64_t m = 0; m < num_paths; ++m)
        for (int64_t i = 0; i <= head; ++i)
          rows.push_back(i == 0 ? 9 : static_cast<TokenId>((17 * m + 5 * i) % kVocab));
      const HeadDrafts once = draft_paths(*fused, hidden_[4], head, rows, true);
      const HeadDrafts each = draft_paths(*fused, hidden_[4], head, rows, false);
      for (const int64_t m : {0, 1, 15, 16, 40, 63, 64, 69}) {
        if (m >= num_paths) break;
        const auto begin = rows.begin() + m * (1 + head);
        const HeadDrafts alone =
            draft_paths(*fused, hidden_[4], head, {begin, begin + 1 + head}, true);
        expect_same(once, m, alone, 0);
        expect_same(each, m, alone, 0);
      }
    }
  });
}

TEST_F(CpuHeadsTest, APathAskedByItselfIsTheSameBitsAsInAText) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto fused = make_cpu_heads(heads, backbone, 10, kernels, pool_);
    const HeadDrafts along = draft(*fused, hidden_, 0, 20);  // all heads
    const auto text = some_text(20 + kNumHeads);
    for (const int64_t m : {0, 7, 19})
      for (int64_t head = 0; head < kNumHeads; ++head) {
        const auto begin = text.begin() + m;
        const HeadDrafts alone =
            draft_paths(*fused, hidden_[m], head, {begin, begin + 1 + head}, true);
        for (int64_t rank = 0; rank < 10; ++rank) {
          ASSERT_EQ(alone.token(0, 0, rank), along.token(m, head, rank));
          ASSERT_EQ(alone.log_prob(0, 0, rank), along.log_prob(m, head, rank));
        }
      }
  });
}

/// The drafts of correct() after begin() at position m, for a head and the tokens of a text.
HeadDrafts correct(HeadsBackend& heads, const at::Tensor& state, int64_t head,
                   std::span<const TokenId> tokens) {
  const TokenId root = 9;
  HeadQuery query{.hidden = state.unsqueeze(0), .tokens = {&root, 1}};
  query.num_positions = 1;
  query.num_heads = kNumHeads;
  HeadDrafts first, drafts;
  heads.begin(query, first);
  expect_same(first, 0, draft_paths(heads, state, 0, {root}, true), 0);
  heads.begin(query, first);
  heads.correct(head, tokens, drafts);
  return drafts;
}

TEST_F(CpuHeadsTest, CorrectionsOfOnePositionAreTheSameBitsAsWholeDrafts) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    if (!heads.correction) return;
    std::vector<TokenId> tokens;
    for (TokenId token = 0; token < kVocab; token += 2) tokens.push_back(token);
    tokens.insert(tokens.end(), {7, 7, 7, 7});  // more than one parallel region
    for (const int threads : {1, 3}) {
      const auto fused =
          make_cpu_heads(heads, backbone, 10, kernels, std::make_shared<ThreadPool>(threads));
      for (int64_t head = 1; head < kNumHeads; ++head) {
        std::vector<TokenId> rows;
        for (const TokenId token : tokens) {
          rows.insert(rows.end(), static_cast<size_t>(head), 9);
          rows.push_back(token);
        }
        const HeadDrafts whole = draft_paths(*fused, hidden_[4], head, rows, true);
        const HeadDrafts found = correct(*fused, hidden_[4], head, tokens);
        ASSERT_EQ(found.size(), std::ssize(tokens));
        for (int64_t m = 0; m < found.size(); ++m) expect_same(found, m, whole, m);
        EXPECT_NE(found.log_prob(6, 0, 0), found.log_prob(13, 0, 0)) << "after tokens 12 and 26";
      }
    }
  });
}

TEST_F(CpuHeadsTest, ThreadsDoNotChangeTheDraftsNorRace) {
  for_each_kind([&](const MedusaHeads& heads, const Weights& backbone, const CpuKernels& kernels) {
    const auto one = make_cpu_heads(heads, backbone, 10, kernels, pool_);
    for (const int threads : {2, 3}) {
      const auto several =
          make_cpu_heads(heads, backbone, 10, kernels, std::make_shared<ThreadPool>(threads));
      for (const int64_t count : {1, 3})
        for (int64_t num_heads = 1; num_heads <= kNumHeads; ++num_heads) {
          const HeadDrafts expected = draft(*one, hidden_, 0, count, num_heads);
          for (int repetition = 0; repetition < 3; ++repetition) {
            const HeadDrafts found = draft(*several, hidden_, 0, count, num_heads);
            for (int64_t m = 0; m < count; ++m) expect_same(found, m, expected, m);
          }
        }
    }
  });
}

TEST_F(CpuHeadsTest, AreWhatTheRunnerUsesWhereTheyRun) {
  for (const HeadsConfig& config : all_configs())
    for (const Weights* backbone : {&plain_, &blocks_}) {
      SCOPED_TRACE(describe(config));
      const MedusaHeads heads = random_heads(config, *backbone);
      const auto fused = make_cpu_heads(heads, *backbone, 10, Kernels::Auto);
      HeadsRunner runner(heads, *backbone, 10);
      const HeadDrafts expected = draft(*fused, hidden_, 0, 17);
      const HeadDrafts& found = runner.draft(hidden_.narrow(0, 0, 17), some_text(17 + kNumHeads));
      EXPECT_EQ(found.tokens, expected.tokens);
      EXPECT_EQ(found.log_probs, expected.log_probs);
      const bool quantized = backbone->kind != QuantKind::None;
      EXPECT_STREQ(runner.kernels(), kernels_for(CpuIsa::Auto, quantized)->name);
      EXPECT_STREQ(HeadsRunner(heads, *backbone, 10, Kernels::Reference).kernels(), "LibTorch");
    }
}

TEST_F(CpuHeadsTest, AreOfferedForTheSizeAndDtypeTheyAreWrittenFor) {
  EXPECT_TRUE(cpu_heads_support(plain_, CpuIsa::Auto));
  EXPECT_TRUE(cpu_heads_support(blocks_, CpuIsa::Auto));
  for (const CpuIsa isa : kCpuIsas)
    for (const Weights& backbone : {plain_, blocks_}) {
      const ExecutionContext execution({.isa = isa});
      const CpuKernels* kernels = kernels_for(isa, backbone.kind != QuantKind::None);
      EXPECT_EQ(cpu_heads_support(backbone, isa), kernels != nullptr);
      if (kernels == nullptr) continue;
      const MedusaHeads heads = random_heads(all_configs().front(), backbone);
      EXPECT_STREQ(HeadsRunner(heads, backbone, 10, execution).kernels(), kernels->name);
      if (kernels->quantize == nullptr) {
        EXPECT_STREQ(make_reference_heads(heads, backbone, 10, execution)->name(), kernels->name)
            << "its twin, too";
      }
    }
  EXPECT_FALSE(cpu_heads_support(tiny_weights(1), CpuIsa::Auto));  // float32
  ModelConfig config = tiny_config();
  config.hidden_size = 72;
  EXPECT_FALSE(cpu_heads_support(tiny_weights(1, config, at::kBFloat16), CpuIsa::Auto));
}

}  // namespace
}  // namespace medusa
