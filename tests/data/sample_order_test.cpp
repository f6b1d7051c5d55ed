#include "data/dataset/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

std::vector<int64_t> first_numbers(int64_t n) {
  std::vector<int64_t> samples(static_cast<size_t>(n));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::vector<int64_t> take(SampleOrder& order, int64_t n) {
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < n; ++i) taken.push_back(order.next());
  return taken;
}

TEST(SampleOrder, EachEpochHasEverySampleOnceInAnotherOrder) {
  SampleOrder order(first_numbers(20), Random(1));
  const auto first = take(order, 20), second = take(order, 20);
  EXPECT_NE(first, second);
  for (auto epoch : {first, second}) {
    EXPECT_NE(epoch, first_numbers(20));
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, first_numbers(20));
  }
}

TEST(SampleOrder, TheSeedDecides) {
  SampleOrder a(first_numbers(20), Random(1)), b(first_numbers(20), Random(1)),
      c(first_numbers(20), Random(2));
  const auto first = take(a, 40);
  EXPECT_EQ(take(b, 40), first);
  EXPECT_NE(take(c, 40), first);
}

TEST(SampleOrder, ContinuesExactlyFromAnySavedState) {
  SampleOrder unbroken(first_numbers(7), Random(3));
  const auto expected = take(unbroken, 30);
  for (int64_t stop = 0; stop < 30; ++stop) {
    SampleOrder before(first_numbers(7), Random(3));
    take(before, stop);
    SampleOrder after(first_numbers(7), Random(3));
    after.continue_from(before.state());
    EXPECT_EQ(after.state(), before.state());
    EXPECT_EQ(take(after, 30 - stop), std::vector<int64_t>(expected.begin() + stop, expected.end()))
        << stop;
  }
}

TEST(SampleOrder, OneSampleComesAgainAndAgain) {
  SampleOrder order({42}, Random(1));
  EXPECT_EQ(take(order, 3), (std::vector<int64_t>{42, 42, 42}));
  EXPECT_EQ(order.state(), (SampleOrder::State{2, 1}));
}

TEST(SampleOrder, AllOrdersAreEquallyFrequent) {
  std::map<std::vector<int64_t>, int> times;
  SampleOrder order(first_numbers(4), Random(5));
  constexpr int kEpochs = 24000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++times[take(order, 4)];
  ASSERT_EQ(times.size(), 24u);
  double chi_square = 0;
  for (const auto& [each, n] : times) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: one in a thousand is above
}

TEST(SampleSplit, HasEverySampleOnceAndAboutTheFraction) {
  const auto split = split_samples(Random(1), 10000, 0.1);
  EXPECT_EQ(split.train.size() + split.validation.size(), 10000u);
  EXPECT_NEAR(static_cast<double>(split.validation.size()), 1000, 100);  // 3.3 deviations
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, first_numbers(10000));
}

TEST(SampleSplit, ASampleStaysWhereItIsWhenTheDatasetGrows) {
  const auto small = split_samples(Random(1), 100, 0.2), large = split_samples(Random(1), 200, 0.2);
  EXPECT_TRUE(
      std::equal(small.validation.begin(), small.validation.end(), large.validation.begin()));
  EXPECT_TRUE(std::equal(small.train.begin(), small.train.end(), large.train.begin()));
}

TEST(SampleSplit, ALargerFractionKeepsTheChosenOnes) {
  for (int64_t i = 0; i < 1000; ++i)
    if (in_validation(Random(9), i, 0.1)) {
      EXPECT_TRUE(in_validation(Random(9), i, 0.3));
    }
}

TEST(SampleSplit, FractionsZeroAndOneAreExact) {
  EXPECT_TRUE(split_samples(Random(1), 50, 0).validation.empty());
  EXPECT_TRUE(split_samples(Random(1), 50, 1).train.empty());
}

/// Writes samples first ... first + count - 1 as a dataset of their own.
void write_part(const fs::path& folder, int64_t first, int64_t count,
                const DatasetInfo& info = fixtures::small_info()) {
  DatasetWriter writer(folder, info, count, 5);
  for (int64_t i = 0; i < count; ++i)
    writer.add(i, fixtures::small_sample(first + i, info.hidden_size));
}

/// Datasets a of 40 samples and b of 60 others.
class DatasetMix : public testing::Test {
 protected:
  void SetUp() override {
    write_part(place("a"), 0, 40);
    write_part(place("b"), 100, 60);
  }
  fs::path place(const char* name) const { return folder_.path() / name; }
  DatasetReader mix(double a, double b) const {
    const std::vector<WeightedFolder> folders{{place("a"), a}, {place("b"), b}};
    return DatasetReader(folders);
  }
  std::string mix_error(const char* left, const char* right) const {
    const std::vector<WeightedFolder> folders{{place(left), 1}, {place(right), 1}};
    return fixtures::error_text(folder_, [&] { DatasetReader{folders}; });
  }

  fixtures::TempFolder folder_;
};

std::vector<int64_t> visits_of(const DatasetReader& dataset, const std::vector<int64_t>& samples,
                               int64_t epoch) {
  return samples_of_epoch(Random(3), dataset, samples, epoch);
}

std::vector<int64_t> count_up(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

TEST_F(DatasetMix, HoldsTheSamplesOfAllOneAfterTheOther) {
  const DatasetReader both = mix(1, 1), a(place("a")), b(place("b"));
  ASSERT_EQ(both.size(), 100);
  EXPECT_EQ(both.num_answer_tokens(), a.num_answer_tokens() + b.num_answer_tokens());
  EXPECT_EQ(both.num_prompts(), 100);
  EXPECT_TRUE(both.complete());
  for (const int64_t i : {0, 39, 40, 41, 99}) {
    SCOPED_TRACE(i);
    const Sample expected = fixtures::small_sample(i < 40 ? i : 100 + i - 40);
    const auto tokens = both.tokens(i);
    EXPECT_EQ(std::vector<TokenId>(tokens.begin(), tokens.end()), expected.tokens);
    EXPECT_EQ(both.answer_start(i), expected.answer_start);
    EXPECT_EQ(both.prompt_id(i), expected.prompt_id);
    std::vector<uint16_t> hidden(expected.hidden.size());
    both.read_hidden(i, hidden);
    EXPECT_EQ(hidden, expected.hidden);
    EXPECT_EQ(both.source_of(i).folder, place(i < 40 ? "a" : "b"));
  }
}

TEST_F(DatasetMix, StatesAreThereOfTheSamplesThatHaveThem) {
  write_part(place("bare"), 300, 10, fixtures::small_info(0));
  const std::vector<WeightedFolder> last{{place("a"), 1}, {place("bare"), 1}};
  const std::vector<WeightedFolder> first{{place("bare"), 1}, {place("a"), 1}};
  for (const auto& folders : {last, first}) {
    const DatasetReader dataset(folders);
    EXPECT_FALSE(dataset.has_hidden());
    EXPECT_EQ(dataset.num_hidden(), 40);
    EXPECT_EQ(dataset.info().hidden_size, 3);
    const bool first_has = folders[0].folder == place("a");
    EXPECT_EQ(dataset.sources()[0].num_hidden, first_has ? 40 : 0);
    EXPECT_EQ(dataset.sources()[1].num_hidden, first_has ? 0 : 40);
    EXPECT_EQ(dataset.has_hidden(0), first_has);
    EXPECT_EQ(dataset.has_hidden(dataset.size() - 1), !first_has);
    const int64_t i = first_has ? 3 : 13;
    std::vector<uint16_t> hidden(fixtures::small_sample(3).hidden.size());
    dataset.read_hidden(i, hidden);
    EXPECT_EQ(hidden, fixtures::small_sample(3).hidden);
  }
}

TEST_F(DatasetMix, FingerprintAndManifestNameAllAndTheirWeights) {
  const DatasetReader once = mix(1, 1), twice = mix(1, 2), a(place("a"));
  EXPECT_NE(once.fingerprint(), twice.fingerprint());
  EXPECT_NE(once.fingerprint(), a.fingerprint());
  EXPECT_EQ(once.sources()[0].fingerprint, a.fingerprint());
  const auto lines = mixed_datasets(twice);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], twice.sources()[1].fingerprint + " weight 2, " + place("b").string());
  EXPECT_TRUE(mixed_datasets(a).empty());
}

TEST_F(DatasetMix, RefusesADatasetOfAnotherModelByName) {
  DatasetInfo info = fixtures::small_info();
  info.backbone = "sha256:b1";
  write_part(place("other"), 200, 5, info);
  EXPECT_EQ(mix_error("a", "other"),
            "<>/other: made with backbone sha256:b1, <>/a with sha256:b0, expected datasets of one "
            "model; leave it out or distil its prompts with the other model");
  info = fixtures::small_info();
  info.tokenizer = "sha256:71";
  write_part(place("words"), 200, 5, info);
  EXPECT_EQ(
      mix_error("a", "words"),
      "<>/words: made with tokenizer sha256:71, <>/a with sha256:70, expected datasets of one "
      "model; leave it out or distil its prompts with the other model");
}

TEST_F(DatasetMix, RefusesTheSameSamplesTwice) {
  fs::copy(place("a"), place("copy"));
  EXPECT_EQ(mix_error("a", "copy"),
            "<>/copy: holds the same samples as <>/a, expected others; name it once and raise its "
            "weight");
}

TEST_F(DatasetMix, OneDatasetIsVisitedInTheOrderThatItAlwaysWas) {
  const DatasetReader a(place("a"));
  SampleOrder order(count_up(40), Random(3));
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto visits = visits_of(a, count_up(40), epoch);
    ASSERT_EQ(visits.size(), 40U);
    for (const int64_t visit : visits) EXPECT_EQ(visit, order.next());
  }
  const SampleSplit split = split_dataset(Random(3), a, 0.2);
  const SampleSplit expected = split_samples(Random(3), 40, 0.2);
  EXPECT_EQ(split.train, expected.train);
  EXPECT_EQ(split.validation, expected.validation);
}

TEST_F(DatasetMix, AWeightSaysHowOftenASampleIsVisited) {
  const DatasetReader dataset = mix(0.25, 2.5);
  std::map<int64_t, int> visits;
  size_t quarter = 0;
  for (int64_t epoch = 0; epoch < 8; ++epoch)
    for (const int64_t sample : visits_of(dataset, count_up(100), epoch)) {
      ++visits[sample];
      quarter += epoch == 0 && sample < 40 ? 1 : 0;
    }
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(visits[i], i < 40 ? 2 : 20) << i;
  EXPECT_GT(quarter, 3U);  // of 40, in the first epoch alone
  EXPECT_LT(quarter, 18U);
}

TEST_F(DatasetMix, AnEpochMixesTheDatasetsAndDiffersFromTheNext) {
  const DatasetReader dataset = mix(1, 1);
  const auto first = visits_of(dataset, count_up(100), 0);
  EXPECT_EQ(first, visits_of(dataset, count_up(100), 0));
  EXPECT_NE(first, visits_of(dataset, count_up(100), 1));
  const auto from_a =
      std::count_if(first.begin(), first.begin() + 50, [](int64_t i) { return i < 40; });
  EXPECT_GT(from_a, 10);
  EXPECT_LT(from_a, 30);
}

TEST_F(DatasetMix, KeepsEachDatasetsOwnValidationSamples) {
  const DatasetReader both = mix(1, 3), b(place("b"));
  const SampleSplit split = split_dataset(Random(3), both, 0.3);
  const SampleSplit own = split_dataset(Random(3), b, 0.3);
  std::vector<int64_t> of_b;
  for (const int64_t sample : split.validation)
    if (sample >= 40) of_b.push_back(sample - 40);
  EXPECT_EQ(of_b, own.validation);
  EXPECT_EQ(split.train.size() + split.validation.size(), 100U);
  // Its beginning holds samples of both, in proportion.
  ASSERT_GE(split.validation.size(), 10U);
  const auto early_a = std::count_if(split.validation.begin(), split.validation.begin() + 10,
                                     [](int64_t i) { return i < 40; });
  EXPECT_GE(early_a, 2);
  EXPECT_LE(early_a, 6);
}

}  // namespace

}  // namespace medusa
