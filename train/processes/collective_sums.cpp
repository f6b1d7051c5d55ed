#include "train/processes/collective_sums.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/processes/waiting.h"

namespace medusa {
namespace {

constexpr int64_t kMostOfCollectivePart = int64_t{1}
                                          << 22;  // numbers that one process adds up at a time

}  // namespace

CollectiveSums::CollectiveSums(c10::intrusive_ptr<c10d::Backend> backend, int64_t rank,
                               int64_t world_size, double timeout)
    : backend_(std::move(backend)), rank_(rank), world_size_(world_size), timeout_(timeout) {}

CollectiveSums::~CollectiveSums() = default;
CollectiveSums::CollectiveSums(CollectiveSums&&) noexcept = default;

void CollectiveSums::add_up(const at::Tensor& flat) {
  const int64_t piece = kMostOfCollectivePart * world_size_;
  for (int64_t begin = 0; begin < flat.numel(); begin += piece)
    add_up_piece(flat.narrow(0, begin, std::min(piece, flat.numel() - begin)));
}

/// @param values  [n], which all hold the sum of afterwards.
void CollectiveSums::add_up_piece(const at::Tensor& values) {
  const int64_t part = (values.numel() + world_size_ - 1) / world_size_;
  // Parts of one size, one behind the other: the last ones may have nothing in them.
  at::Tensor all = at::zeros({world_size_ * part}, values.options());
  const at::Tensor there = all.narrow(0, 0, values.numel());
  there.copy_(values);
  at::Tensor parts = at::empty_like(all);  // what each process has of this one's part
  std::vector<int64_t> even;
  finish(backend_->alltoall_base(parts, all, even, even));
  at::Tensor own = parts.narrow(0, 0, part);
  for (int64_t process = 1; process < world_size_; ++process)
    own.add_(parts.narrow(0, process * part, part));
  finish(backend_->_allgather_base(all, own));
  values.copy_(there);
}

void CollectiveSums::hand_out(const at::Tensor& flat) {
  if (flat.numel() == 0) return;
  std::vector<at::Tensor> values{flat};
  finish(backend_->broadcast(values));
}

void CollectiveSums::finish(const c10::intrusive_ptr<c10d::Work>& work) {
  const Waiting waiting(timeout_);
  while (!work->isCompleted() && !waiting.is_over()) waiting.pause();
  std::string what = fmt::format("did not take part in a sum for {} s", timeout_);
  if (work->isCompleted()) {
    try {
      work->wait();
      return;
    } catch (const std::exception&) {
      what = fmt::format("ended during a sum by {}", backend_->getBackendName());
    }
  }
  throw UserError(fmt::format(
      "train: another process than {} of {} {}, expected it to go on; look at what the others "
      "printed and start all of them again, which continues from the last checkpoint",
      rank_, world_size_, what));
}

void CollectiveSums::abandon() { backend_.release(); }

}  // namespace medusa
