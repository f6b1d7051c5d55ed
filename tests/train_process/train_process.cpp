// One of several processes that train together, as a test or mpirun starts it.
//   train_process PART FOLDER NAME
// leaves in FOLDER: NAME.pid-RANK when it begins; NAME.complete-RANK or NAME.stopped-RANK; and in
// NAME.said-RANK what it threw, "(no error)" otherwise. Process 0 trains in FOLDER/NAME, the others
// in FOLDER/NAME-RANK, where none of them must write.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "base/interrupt.h"
#include "base/yaml_fields.h"
#include "tests/train/tiny_run.h"
#include "tests/train_process/gloo_sums.h"
#include "tests/train_process/part_settings.h"
#include "train/joint/joint_run.h"
#include "train/processes/data_parallel.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path folder;
  std::string name;
  int64_t rank = 0;

  std::string marked(const std::string& what) const {
    return (folder / fmt::format("{}.{}-{}", name, what, rank)).string();
  }
  fs::path run() const { return folder / (rank == 0 ? name : fmt::format("{}-{}", name, rank)); }
  PartSettings settings() const {
    const fs::path own = folder / fmt::format("{}-{}.yaml", name, rank);
    return read_config<PartSettings>(
        YamlFile(fs::exists(own) ? own : folder / fmt::format("{}.yaml", name)));
  }
};

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

bool train_heads_part(const Place& place, ProcessGroup& group) {
  const PartSettings settings = place.settings();
  const Weights backbone = tiny_weights(1, tiny_config(), at::kFloat);
  const DatasetReader dataset(place.folder / "dataset");
  return train_heads(settings.train, settings.heads,
                     {dataset,
                      backbone,
                      nullptr,
                      place.run() / "heads",
                      place.run() / "train",
                      "settings\n",
                      {},
                      &group})
      .complete;
}

bool train_joint_part(const Place& place, ProcessGroup& group) {
  const PartSettings settings = place.settings();
  const Weights backbone = tiny_weights(1, tiny_config(), at::kFloat);
  const DatasetReader dataset(place.folder / "dataset");
  const MedusaHeads first = tiny_first_heads(settings.heads, backbone);
  return train_joint(settings.train, settings.joint,
                     {dataset, backbone, first, "sha256:5", place.run() / "train", {}, &group})
      .complete;
}

/// In float32 the order decides: (1e8 + 1) - 1e8 is 0, (1e8 - 1e8) + 1 is 1. Long tensors go in
/// pieces, short ones leave most processes without a part.
bool sum_in_the_order_of_the_ranks(const Place&, ProcessGroup& group) {
  const std::vector<float> numbers{1e8F, 1, -1e8F};
  expect(group.world_size() == 3, "three processes");
  const float mine = numbers[static_cast<size_t>(group.rank())];
  for (const int64_t size : {1, 2, 3, 1000, 5'000'003}) {
    at::Tensor values = at::full({size}, mine, at::kFloat);
    group.all_reduce(values);
    expect(values.eq((1e8F + 1) - 1e8F).all().item<bool>(), fmt::format("a sum of {}", size));
  }
  // Random numbers, whose sum every process can make by itself.
  const auto numbers_of = [](int64_t rank) {
    return at::sin(at::arange(3'500'000, at::kFloat) * (1.7 + static_cast<double>(rank)));
  };
  at::Tensor sum = numbers_of(group.rank());
  group.all_reduce(sum);
  expect(sum.equal(numbers_of(0).add_(numbers_of(1)).add_(numbers_of(2))), "the same bits");
  std::vector<int64_t> counts{group.rank() + 5};
  sum_counts(&group, counts);
  expect(counts[0] == 18, "a sum of counts");
  group.all_reduce(at::empty({0}, at::kFloat));
  return true;
}

bool take_what_the_first_one_has(const Place&, ProcessGroup& group) {
  expect(value_of_first(&group, 70 + group.rank()) == 70, "the first one's number");
  expect(text_of_first(&group, std::string(static_cast<size_t>(group.rank()), 'x')).empty(),
         "the first one's text");
  expect(is_true_in_any(&group, group.rank() == 2), "what is true in one");
  expect(!is_true_in_any(&group, false), "what is true in none");
  at::Tensor weight = at::full({3, 2}, group.rank(), at::kFloat);
  weight.set_requires_grad(true);
  AdamW optimizer({{"weight", weight}});
  if (group.rank() == 0) {
    weight.mutable_grad() = at::ones_like(weight);
    optimizer.step(0.5, 0, 100);
  }
  take_state_of_first(&group, {{"weight", weight}}, optimizer);
  expect(std::abs(weight[2][1].item<float>() + 0.5) < 1e-6, "the first one's parameters");
  expect(optimizer.num_steps() == 1, "the first one's steps");
  expect(optimizer.moments()[1].second[0][0].item<float>() > 0, "the first one's moments");
  at::Tensor large = at::full({3'000'001}, group.rank() + 1, at::kFloat);
  group.broadcast(large);
  expect(large.eq(1).all().item<bool>(), "the first one's large tensor");
  return true;
}

bool add_up_losses_and_gradients(const Place&, ProcessGroup& group) {
  const int64_t rank = group.rank();
  std::vector<HeadLoss> heads(2);
  heads[1] = {0.25 * static_cast<double>(rank), rank, 10, 1, 2, 3};
  sum_losses(&group, heads);
  expect(heads[0].num_scored == 0 && heads[1].loss == 0.75 && heads[1].num_labels == 3 &&
             heads[1].num_scored == 30 && heads[1].top_1 == 3 && heads[1].top_5 == 6 &&
             heads[1].top_10 == 9,
         "the losses' sums");
  at::Tensor a = at::zeros({2, 2}), b = at::zeros({3});
  if (rank != 1) a.mutable_grad() = at::full({2, 2}, 1.0);
  b.mutable_grad() = at::full({3}, static_cast<double>(rank));
  sum_gradients(&group, {{"a", a}, {"b", b}});
  expect(a.grad().equal(at::full({2, 2}, 2.0)), "a sum of two gradients");
  expect(b.grad().equal(at::full({3}, 3.0)), "a sum of three gradients");
  return true;
}

bool hold_other_weights(const Place&, ProcessGroup& group) {
  at::Tensor weight = at::zeros({5});
  check_same_parameters(&group, {{"weight", weight}}, 7);
  if (group.rank() == 2) weight[3] = 1e-30F;
  check_same_parameters(&group, {{"weight", weight}}, 8);
  return true;
}

bool be_late(const Place&, ProcessGroup& group) {
  if (group.rank() == 1) ::sleep(5);
  group.barrier();
  return true;
}

/// The collectives that NCCL runs on GPUs, run by gloo. The numbers are random, so each process can
/// make their sum by itself; short tensors leave processes without a part, long ones go in pieces.
bool sum_by_collectives(const Place& place, ProcessGroup& group) {
  CollectiveSums sums = sums_of_gloo(group, place.settings().train.peer_timeout_s);
  for (const int64_t size : {1, 2, 5, 1000, 13'000'001}) {
    const auto numbers_of = [size](int64_t rank) {
      return at::sin(at::arange(size, at::kFloat) * (1.7 + static_cast<double>(rank)));
    };
    const at::Tensor sum = numbers_of(group.rank());
    sums.add_up(sum);
    expect(sum.equal(numbers_of(0).add_(numbers_of(1)).add_(numbers_of(2))),
           fmt::format("the same bits of {}", size));
    const at::Tensor first = numbers_of(group.rank());
    sums.hand_out(first);
    expect(first.equal(numbers_of(0)), "the first one's tensor");
  }
  const at::Tensor counts = at::full({2}, group.rank(), at::kLong), nothing = at::empty({0});
  sums.add_up(counts);
  expect(counts.eq(3).all().item<bool>(), "a sum of counts");
  sums.add_up(nothing);
  sums.hand_out(nothing);
  group.barrier();
  return true;
}

bool be_late_for_collectives(const Place& place, ProcessGroup& group) {
  CollectiveSums sums = sums_of_gloo(group, place.settings().train.peer_timeout_s);
  if (group.rank() == 1) ::sleep(8);
  const at::Tensor values = at::ones({5});
  try {
    sums.add_up(values);
  } catch (...) {
    sums.abandon();
    throw;
  }
  return true;
}

/// Each one's first GPU is the other's, too.
bool share_a_gpu(const Place&, ProcessGroup& group) {
  group.check_own_gpu(group.rank());
  group.check_own_gpu(group.rank() / 2);
  return true;
}

/// mpirun was told to bind nobody.
bool share_the_cpus(const Place&, ProcessGroup& group) {
  expect(group.own_cpus({0, 1, 2, 3, 4, 5}).cpus == 6 / group.world_size(),
         "a share of common CPUs");
  expect(group.own_cpus({static_cast<int>(group.rank()), 700}).cpus == 1,
         "a part of one that is shared");
  const auto own =
      group.own_cpus({static_cast<int>(2 * group.rank()), static_cast<int>(2 * group.rank()) + 1});
  expect(own.cpus == 2, "all of its own");
  expect(own.processes == group.world_size(), "all processes on this machine");
  return true;
}

const std::map<std::string, std::function<bool(const Place&, ProcessGroup&)>> kParts{
    {"heads", train_heads_part},
    {"joint", train_joint_part},
    {"sums", sum_in_the_order_of_the_ranks},
    {"broadcasts", take_what_the_first_one_has},
    {"losses", add_up_losses_and_gradients},
    {"other_weights", hold_other_weights},
    {"late", be_late},
    {"cpus", share_the_cpus},
    {"collectives", sum_by_collectives},
    {"late_collectives", be_late_for_collectives},
    {"gpus", share_a_gpu},
};

/// @returns  the exit code, as the program's main does it.
int run_part(const std::string& part, Place place) {
  const ProcessPlace process = process_place();
  place.rank = process.rank;
  write_file(place.marked("pid"), std::to_string(::getpid()));
  const double timeout = place.settings().train.peer_timeout_s;
  std::string said = "(no error)";
  try {
    const auto group = join_processes(process, at::kCPU, timeout);
    const bool complete = kParts.at(part)(place, *group);
    write_file(place.marked(complete ? "complete" : "stopped"), "");
  } catch (const std::exception& error) {
    said = error.what();
  }
  write_file(place.marked("said"), said);
  return said == "(no error)" ? 0 : 2;
}

}  // namespace
}  // namespace medusa

// Open MPI leaves memory behind in modules that it has unloaded, which no suppression can name.
extern "C" int __lsan_is_turned_off() { return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr; }

int main(int count, char** words) {
  if (count != 4) return 2;
  medusa::install_interrupt_handler();
  return medusa::run_part(words[1], {words[2], words[3]});
}
