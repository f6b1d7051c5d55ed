#include "train/processes/message_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace {

constexpr int64_t kMostOfPart = int64_t{1} << 20;  // numbers that one process adds up at a time

void add_message(std::vector<Message>& messages, Message message) {
  if (message.values.numel() > 0) messages.push_back(std::move(message));
}

}  // namespace

void MessageGroup::add_up(const at::Tensor& flat) {
  if (flat.numel() < world_size()) {  // everybody has a part, and so hears of everybody else
    const at::Tensor padded = at::zeros({world_size()}, flat.options());
    padded.narrow(0, 0, flat.numel()).copy_(flat);
    add_up_piece(padded);
    flat.copy_(padded.narrow(0, 0, flat.numel()));
    return;
  }
  const int64_t piece = kMostOfPart * world_size();
  for (int64_t begin = 0; begin < flat.numel(); begin += piece)
    add_up_piece(flat.narrow(0, begin, std::min(piece, flat.numel() - begin)));
}

void MessageGroup::hand_out(const at::Tensor& flat) {
  for (int64_t begin = 0; begin < flat.numel(); begin += kMostOfPart) {
    const at::Tensor piece = flat.narrow(0, begin, std::min(kMostOfPart, flat.numel() - begin));
    std::vector<Message> messages;
    if (rank() != 0) messages.push_back({0, piece, true});
    for (int64_t other = 1; rank() == 0 && other < world_size(); ++other)
      messages.push_back({other, piece, false});
    exchange(messages);
  }
}

/// The part of some values that a process adds up.
at::Tensor MessageGroup::part_of(const at::Tensor& values, int64_t process) const {
  const int64_t begin = values.numel() * process / world_size(),
                end = values.numel() * (process + 1) / world_size();
  return values.narrow(0, begin, end - begin);
}

/// @param values  [n], which all hold the sum of afterwards.
void MessageGroup::add_up_piece(const at::Tensor& values) {
  const at::Tensor own = part_of(values, rank());
  const at::Tensor parts = at::empty({world_size(), own.numel()}, own.options());
  std::vector<Message> first, second;
  for (int64_t other = 0; other < world_size(); ++other) {
    if (other == rank()) continue;
    add_message(first, {other, parts[other], true});
    add_message(first, {other, part_of(values, other), false});
    add_message(second, {other, part_of(values, other), true});
    add_message(second, {other, own, false});
  }
  parts[rank()].copy_(own);
  exchange(first);
  own.copy_(parts[0]);
  for (int64_t process = 1; process < world_size(); ++process) own.add_(parts[process]);
  exchange(second);
}

void MessageGroup::fail_late(int64_t other) const {
  fail(other, fmt::format("did not answer for {} s", timeout_));
}

void MessageGroup::fail_broken(int64_t other, const std::string& words) const {
  fail(other,
       fmt::format("ended, its connection broke, or it exchanges something else ({})", words));
}

void MessageGroup::fail(int64_t other, const std::string& what) const {
  throw UserError(fmt::format(
      "train: process {} of {} {}, expected it to go on with process {}; look at what it printed "
      "and start all of them again, which continues from the last checkpoint",
      other, world_size(), what, rank()));
}

}  // namespace medusa
