#include "tests/train_process/gloo_sums.h"

#define USE_C10D_GLOO
#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "train/processes/data_parallel.h"

namespace medusa {

CollectiveSums sums_of_gloo(ProcessGroup& group, double timeout) {
  const std::chrono::milliseconds limit(static_cast<int64_t>(2000 * timeout));
  c10d::TCPStoreOptions store_options;
  store_options.isServer = group.rank() == 0;
  store_options.waitWorkers = false;
  store_options.timeout = limit;
  store_options.port = 0;  // a free one
  c10::intrusive_ptr<c10d::TCPStore> store;
  if (group.rank() == 0) store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options);
  store_options.port =
      static_cast<uint16_t>(value_of_first(&group, group.rank() == 0 ? store->getPort() : 0));
  if (group.rank() != 0) store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options);
  auto options = c10d::ProcessGroupGloo::Options::create(limit);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(group.rank()),
                                                          static_cast<int>(group.world_size()),
                                                          std::move(options));
  return {std::move(gloo), group.rank(), group.world_size(), timeout};
}

}  // namespace medusa
