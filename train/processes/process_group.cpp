#include "train/processes/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

constexpr int64_t kMostCpus = 1024;
constexpr int64_t kBitsOfWord = 64;
constexpr int64_t kWords = kMostCpus / kBitsOfWord;

/// A number that the processes of one machine have in common.
int64_t machine_number() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  const std::string digest = fingerprint_text(name);  // "sha256:4f0c…"
  return std::stoll(digest.substr(digest.find(':') + 1, 15), nullptr, 16);
}

/// Exchanges values where MPI can read them.
template <typename Exchange>
void through_cpu(const at::Tensor& values, const Exchange& exchange) {
  MEDUSA_ASSERT(values.is_contiguous());
  const at::Tensor there = values.cpu();  // itself, if it is there
  exchange(there.view({-1}));
  if (!values.is_cpu()) values.copy_(there);
}

/// A machine's number and a bit for each of its CPUs.
at::Tensor row_of_cpus(const std::vector<int>& allowed) {
  at::Tensor row = at::zeros({1 + kWords}, at::kLong);
  auto* words = row.mutable_data_ptr<int64_t>();
  words[0] = machine_number();
  for (const int cpu : allowed)
    if (cpu < kMostCpus)
      words[1 + cpu / kBitsOfWord] |= static_cast<int64_t>(uint64_t{1} << (cpu % kBitsOfWord));
  return row;
}

}  // namespace

void ProcessGroup::all_reduce(const at::Tensor& values) {
  through_cpu(values, [this](const at::Tensor& flat) { add_up(flat); });
}

void ProcessGroup::broadcast(const at::Tensor& values) {
  through_cpu(values, [this](const at::Tensor& flat) { hand_out(flat); });
}

void ProcessGroup::barrier() { all_reduce(at::zeros({1}, at::kFloat)); }

void ProcessGroup::check_same(const std::string& held, const std::string& what,
                              const std::string& remedy) {
  const std::string digest = fingerprint_text(held);
  at::Tensor mine = at::empty({std::ssize(digest)}, at::kByte);
  std::memcpy(mine.data_ptr(), digest.data(), digest.size());
  at::Tensor first = mine.clone();
  broadcast(first);
  at::Tensor differ = at::zeros({world_size()}, at::kInt);
  if (!mine.equal(first)) differ[rank()] = 1;
  all_reduce(differ);
  for (int64_t i = 0; i < world_size(); ++i)
    if (differ[i].item<int>() != 0)
      throw UserError(
          fmt::format("train: process {} of {} {} than process 0, expected the same everywhere; {}",
                      i, world_size(), what, remedy));
}

ProcessGroup::CpuShare ProcessGroup::own_cpus(const std::vector<int>& allowed) {
  at::Tensor rows = at::zeros({world_size(), 1 + kWords}, at::kLong);
  const at::Tensor mine = row_of_cpus(allowed);
  rows[rank()].copy_(mine);
  all_reduce(rows);
  int64_t sharing = 0, here = 0;
  const auto* own = mine.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < world_size(); ++i) {
    const auto* other = rows.const_data_ptr<int64_t>() + i * (1 + kWords);
    if (own[0] != other[0]) continue;
    ++here;
    bool common = false;
    for (int64_t word = 1; word <= kWords; ++word) common |= (own[word] & other[word]) != 0;
    if (common) ++sharing;
  }
  return {std::max<int64_t>(1, std::ssize(allowed) / std::max<int64_t>(1, sharing)), here};
}

std::unique_ptr<ProcessGroup> join_processes(const ProcessPlace& place, double timeout) {
  if (place.world_size == 1) return nullptr;
  MEDUSA_ASSERT(place.rank >= 0 && place.rank < place.world_size, place.rank, place.world_size);
  if (place.launcher == Launcher::Torchrun)
    throw UserError(fmt::format(
        "train: {} processes were started by torchrun (RANK and WORLD_SIZE are set), expected "
        "mpirun or srun, which bring processes together through MPI; start them with mpirun -n {} "
        "medusa train …, or unset RANK and WORLD_SIZE to train alone",
        place.world_size, place.world_size));
  return make_mpi_group(place, timeout);
}

}  // namespace medusa
