#include "train/processes/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "train/processes/nccl_backend.h"

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
  exchange_there(values, [this](const at::Tensor& flat) { add_up(flat); });
}

void ProcessGroup::broadcast(const at::Tensor& values) {
  exchange_there(values, [this](const at::Tensor& flat) { hand_out(flat); });
}

/// Exchanges values where those who carry them can read them.
template <typename Exchange>
void ProcessGroup::exchange_there(const at::Tensor& values, const Exchange& exchange) const {
  MEDUSA_ASSERT(values.is_contiguous());
  if (reaches(values.device())) return exchange(values.view({-1}));
  const at::Tensor there = values.cpu();
  exchange(there.view({-1}));
  values.copy_(there);
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

void ProcessGroup::check_own_gpu(int64_t gpu) {
  at::Tensor rows = at::zeros({world_size(), 2}, at::kLong);
  auto* const all = rows.mutable_data_ptr<int64_t>();
  all[2 * rank()] = machine_number();
  all[2 * rank() + 1] = gpu;
  all_reduce(rows);
  for (int64_t later = 1; later < world_size(); ++later)
    for (int64_t i = 0; i < later; ++i)
      if (std::equal(all + 2 * i, all + 2 * i + 2, all + 2 * later))
        throw UserError(fmt::format(
            "train: processes {} and {} of {} compute on one GPU, number {} of their machine, "
            "expected one of its own for each; start as many processes on a machine as it has GPUs",
            i, later, world_size(), all[2 * i + 1]));
}

std::unique_ptr<ProcessGroup> join_processes(const ProcessPlace& place, at::Device device,
                                             double timeout) {
  if (place.world_size == 1) return nullptr;
  MEDUSA_ASSERT(place.rank >= 0 && place.rank < place.world_size, place.rank, place.world_size);
  const bool speaks_mpi = place.launcher == Launcher::Mpirun || place.launcher == Launcher::Srun;
  if (speaks_mpi && !(device.is_cuda() && has_nccl())) return make_mpi_group(place, timeout);
  return make_c10d_group(place, meeting_point(place.world_size), device, timeout);
}

}  // namespace medusa
