#include "train/processes/peers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <future>
#include <random>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

constexpr size_t kTicketSize = 32;
// Process 0 tells which one is missing; the others wait a little longer, so that it speaks first.
constexpr double kPatienceOfOthers = 1.25;

/// What the first message on a connection says.
struct Greeting {
  std::array<char, kTicketSize> ticket{};  // known only from the store
  int64_t rank = 0;
};

template <typename T>
std::span<uint8_t> bytes_of_value(T& value) {
  return {reinterpret_cast<uint8_t*>(&value), sizeof value};
}

std::span<uint8_t> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<uint8_t*>(tensor.data_ptr()), tensor.nbytes()};
}

/// Not secret from whoever can read the store; keeps strays and other runs out.
std::string draw_ticket() {
  std::random_device device;
  std::string ticket;
  while (ticket.size() < kTicketSize) ticket += fmt::format("{:08x}", device());
  return ticket.substr(0, kTicketSize);
}

/// A machine may know its own name as 127.0.1.1, which leads others to themselves.
void check_others_reach(const TcpListener& listener, const ProcessPlace& place) {
  if (place.local_count >= place.count || !listener.address().starts_with("127.")) return;
  throw UserError(fmt::format(
      "train: MASTER_ADDR is '{}', which is {} here, and {} of {} processes are on other machines, "
      "expected an address at which they reach this one; give that address in numbers",
      place.address, listener.address(), place.count - place.local_count, place.count));
}

/// The port behind the ticket. Anybody who reaches the store can write there.
int64_t told_port(const std::string& told) {
  int64_t port = 0;
  if (told.size() > kTicketSize + 1 && told[kTicketSize] == ' ')
    std::from_chars(told.data() + kTicketSize + 1, told.data() + told.size(), port);
  if (port < 1 || port > 65535)
    throw UserError(
        "train: the place that process 0 told in the store at MASTER_ADDR is none, expected its "
        "port; another program uses that store: start all processes with another MASTER_PORT");
  return port;
}

Deadline seconds_from_now(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
}

/// The store in which process 0 says where it listens. c10d waits for ever where a stranger answers
/// in its place and keeps silent. So it is asked in a thread, which is left behind then.
class Meeting {
 public:
  Meeting(const ProcessPlace& place, double timeout)
      : key_("medusa/" + place.attempt),
        place_(place),
        timeout_(timeout),
        end_(seconds_from_now(timeout)) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place.port);
    options.isServer = place.rank == 0 && !place.has_store;
    options.waitWorkers = false;
    options.timeout = std::chrono::milliseconds(static_cast<int64_t>(1000 * timeout));
    // Asked here first: where nobody listens, c10d prints a page of its own.
    if (!options.isServer && !connect_to(place.address, place.port, end_)) fail("nobody answered");
    // c10d itself would listen at every address of the machine.
    if (options.isServer) options.masterListenFd = TcpListener(place.address, place.port).release();
    store_ = ask([address = place.address, options] {
      return c10::make_intrusive<c10d::TCPStore>(address, options);
    });
  }

  void tell(const std::string& text) {
    ask([store = store_, key = key_, bytes = std::vector<uint8_t>(text.begin(), text.end())] {
      store->set(key, bytes);
      return true;
    });
  }
  std::string hear() {
    const auto bytes = ask([store = store_, key = key_] { return store->get(key); });
    return {bytes.begin(), bytes.end()};
  }

 private:
  /// @param question  holds all that it uses, as it may outlive this.
  template <typename Question>
  std::invoke_result_t<Question> ask(Question question) const {
    std::packaged_task<std::invoke_result_t<Question>()> task(std::move(question));
    auto answer = task.get_future();
    std::thread thread(std::move(task));
    while (answer.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (interrupted() || std::chrono::steady_clock::now() >= end_) {
        thread.detach();
        fail("no answer");
      }
    thread.join();
    try {
      return answer.get();
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      fail(text.substr(0, text.find('\n')));
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    stop_if_interrupted();
    throw UserError(fmt::format(
        "train: process {} of {} asked for the others at {}:{} and found none within {} s ({}), "
        "expected process 0 there; start all processes, and set MASTER_ADDR and MASTER_PORT to "
        "where process 0 runs and a port that is free",
        place_.rank, place_.count, place_.address, place_.port, timeout_, why));
  }

  std::string key_;
  ProcessPlace place_;
  double timeout_;
  Deadline end_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

Peers::Peers(const ProcessPlace& place, double timeout) : place_(place), timeout_(timeout) {
  MEDUSA_ASSERT(place.count > 1 && place.rank >= 0 && place.rank < place.count, place.rank,
                place.count);
  if (place.rank == 0) {
    TcpListener listener(place.address);
    check_others_reach(listener, place);
    Meeting meeting(place, timeout);
    const std::string ticket = draw_ticket();
    meeting.tell(fmt::format("{} {}", ticket, listener.port()));
    accept_all(listener, ticket);
    return;
  }
  Meeting meeting(place, timeout);
  const std::string told = meeting.hear();
  auto link = connect_to(place.address, told_port(told), deadline());
  stop_if_interrupted();
  if (!link) fail(0, Transfer::TimedOut);
  Greeting greeting;
  std::memcpy(greeting.ticket.data(), told.data(), kTicketSize);
  greeting.rank = place.rank;
  links_.push_back({0, std::move(*link)});
  if (const Transfer how = links_[0].link.send(bytes_of_value(greeting), deadline());
      how != Transfer::Done)
    fail(0, how);
  wait_for_all();  // then the store may go
}

void Peers::accept_all(TcpListener& listener, const std::string& ticket) {
  const Deadline end = deadline();
  while (std::ssize(links_) + 1 < place_.count) {
    Greeting greeting;
    auto link = listener.accept(bytes_of_value(greeting), end);
    stop_if_interrupted();
    if (!link)
      throw UserError(fmt::format(
          "train: {} of {} processes came within {} s, expected all of them; look at what the "
          "others printed, and start them all again (train.peer_timeout_s is how long to wait)",
          links_.size() + 1, place_.count, timeout_));
    const bool ours = std::string_view(greeting.ticket.data(), kTicketSize) == ticket;
    const bool fits = ours && greeting.rank > 0 && greeting.rank < place_.count;
    if (fits) links_.push_back({greeting.rank, std::move(*link)});
  }
  std::sort(links_.begin(), links_.end(),
            [](const Link& a, const Link& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < links_.size(); ++i)
    if (links_[i].rank != static_cast<int64_t>(i) + 1)
      throw UserError(fmt::format(
          "train: two processes say that they are number {} of {}, expected each number once; "
          "start them with torchrun, mpirun or srun, which number them",
          links_[i].rank, place_.count));
  wait_for_all();
}

Peers::~Peers() = default;

Deadline Peers::deadline() const {
  return seconds_from_now(place_.rank == 0 ? timeout_ : kPatienceOfOthers * timeout_);
}

void Peers::fail(int64_t rank, Transfer how) const {
  const std::string what = how == Transfer::Closed
                               ? "ended, or its connection broke"
                               : fmt::format("did not answer for {} s", timeout_);
  throw UserError(fmt::format(
      "train: process {} of {} {}, expected it to go on with process {}; look at what it printed "
      "and start all of them again, which continues from the last checkpoint",
      rank, place_.count, what, place_.rank));
}

void Peers::send_to(Link& link, const at::Tensor& values) {
  const Transfer how = link.link.send(bytes_of_tensor(values), deadline());
  if (how != Transfer::Done) fail(link.rank, how);
}

void Peers::receive_from(Link& link, const at::Tensor& values) {
  const Transfer how = link.link.receive(bytes_of_tensor(values), deadline());
  if (how != Transfer::Done) fail(link.rank, how);
}

void Peers::sum(at::Tensor values) {
  MEDUSA_ASSERT(values.is_contiguous());
  const at::Tensor host = values.cpu();  // itself, if it is there
  if (rank() == 0) {
    const at::Tensor other = at::empty_like(host);
    for (Link& link : links_) {
      receive_from(link, other);
      host.add_(other);
    }
    for (Link& link : links_) send_to(link, host);
  } else {
    send_to(links_[0], host);
    receive_from(links_[0], host);
  }
  if (!values.is_cpu()) values.copy_(host);
}

void Peers::broadcast(at::Tensor values) {
  MEDUSA_ASSERT(values.is_contiguous());
  const at::Tensor host = values.cpu();
  if (rank() == 0)
    for (Link& link : links_) send_to(link, host);
  else
    receive_from(links_[0], host);
  if (!values.is_cpu()) values.copy_(host);
}

void Peers::wait_for_all() { sum(at::zeros({1}, at::kFloat)); }

void Peers::check_same(const std::string& held, const std::string& what,
                       const std::string& remedy) {
  const std::string digest = Fingerprint().add(std::string_view(held)).digest();
  at::Tensor mine = at::empty({std::ssize(digest)}, at::kByte);
  std::memcpy(mine.data_ptr(), digest.data(), digest.size());
  at::Tensor first = mine.clone();
  broadcast(first);
  at::Tensor differ = at::zeros({count()}, at::kInt);
  if (!mine.equal(first)) differ[rank()] = 1;
  sum(differ);
  for (int64_t i = 0; i < count(); ++i)
    if (differ[i].item<int>() != 0)
      throw UserError(
          fmt::format("train: process {} of {} {} than process 0, expected the same everywhere; {}",
                      i, count(), what, remedy));
}

std::unique_ptr<Peers> join_peers(const ProcessPlace& place, double timeout) {
  return place.count == 1 ? nullptr : std::make_unique<Peers>(place, timeout);
}

}  // namespace medusa
