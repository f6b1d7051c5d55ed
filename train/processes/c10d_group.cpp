// Processes that c10d connects: gloo between CPUs, for messages with a deadline, and NCCL between
// GPUs where the build has it.
#define USE_C10D_GLOO  // the library has it, and its header wants this said
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <exception>
#include <optional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "base/error.h"
#include "train/processes/collective_sums.h"
#include "train/processes/message_group.h"
#include "train/processes/nccl_backend.h"
#include "train/processes/rendezvous.h"
#include "train/processes/waiting.h"

namespace medusa {
namespace {

/// What an exception says, without the place in its library that begins it: "[…/pair.cc:534] ".
std::string words_of(const std::exception& error) {
  std::string words = error.what();
  words.resize(std::min(words.find('\n'), words.size()));
  const size_t end = words.find("] ");
  return words.starts_with('[') && end != std::string::npos ? words.substr(end + 2) : words;
}

class C10dGroup : public MessageGroup {
 public:
  C10dGroup(const ProcessPlace& place, const MeetingPoint& point, at::Device device, double timeout)
      : MessageGroup(place, timeout), met_(meet(place, point, timeout)) {
    connect();
    if (!device.is_cuda() || !has_nccl()) return;
    check_own_gpu(device.index());
    const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", met_.store);
    nccl_.emplace(make_nccl_backend(store, place, device, timeout), place.rank, place.world_size,
                  timeout);
  }

  ~C10dGroup() override {
    if (std::uncaught_exceptions() == exceptions_)
      say_farewell(met_, world_size());
    else if (nccl_)
      nccl_->abandon();  // it would wait for the others
  }

  std::string carrier() const override { return nccl_ ? "NCCL" : "gloo"; }

 private:
  void connect() {
    auto options = c10d::ProcessGroupGloo::Options::create(Waiting::milliseconds_of(patience()));
    try {
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(met_.own_address));
      gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("gloo", met_.store), static_cast<int>(rank()),
          static_cast<int>(world_size()), std::move(options));
    } catch (const std::exception& error) {
      throw UserError(fmt::format(
          "train: process {} of {} is at {} and cannot connect to the others ({}), expected that "
          "all machines reach each other; set MASTER_ADDR to an address in the network that they "
          "have in common",
          rank(), world_size(), met_.own_address, words_of(error)));
    }
  }

  bool reaches(at::Device device) const override { return device.is_cpu() || nccl_; }

  void add_up(const at::Tensor& flat) override {
    if (flat.is_cpu()) return MessageGroup::add_up(flat);
    barrier();  // which tells who is missing, as NCCL cannot
    nccl_->add_up(flat);
  }

  void hand_out(const at::Tensor& flat) override {
    if (flat.is_cpu()) return MessageGroup::hand_out(flat);
    barrier();
    nccl_->hand_out(flat);
  }

  void exchange(const std::vector<Message>& messages) override {
    const Waiting waiting(patience());
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    size_t at = 0;
    try {
      for (; at < messages.size(); ++at) works.push_back(begin(messages[at]));
      for (at = 0; at < messages.size(); ++at) works[at]->wait(waiting.left());
    } catch (const std::exception& error) {
      if (waiting.is_over()) fail_late(messages[at].other);
      fail_broken(messages[at].other, words_of(error));
    }
  }

  c10::intrusive_ptr<c10d::Work> begin(const Message& message) {
    std::vector<at::Tensor> values{message.values};
    const int other = static_cast<int>(message.other);
    return message.comes ? gloo_->recv(values, other, 0) : gloo_->send(values, other, 0);
  }

  Rendezvous met_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  std::optional<CollectiveSums> nccl_;
  int exceptions_ = std::uncaught_exceptions();  // that pass when the group is made
};

}  // namespace

std::unique_ptr<ProcessGroup> make_c10d_group(const ProcessPlace& place, const MeetingPoint& point,
                                              at::Device device, double timeout) {
  return std::make_unique<C10dGroup>(place, point, device, timeout);
}

}  // namespace medusa
