#include "base/formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace {

constexpr int64_t kMostOperations = 400'000;  // heads have hundreds
constexpr std::string_view kOrderedDict = "collections OrderedDict";

using Kind = PickleValue::Kind;

}  // namespace

/// Runs the program on a stack of places; the stack is only ever a list of values.
class PickleMachine {
 public:
  PickleMachine(Pickle& out, std::span<const uint8_t> bytes, std::string where,
                std::span<const std::string_view> globals)
      : out_(out), bytes_(bytes), where_(std::move(where)), globals_(globals) {}

  void run();

 private:
  [[noreturn]] void fail(const std::string& found_and_expected) const {
    throw UserError(fmt::format(
        "{}: byte {} of the pickle: {}; nothing of it was executed: save the tensors as "
        "safetensors, or choose another file",
        where_, at_, found_and_expected));
  }

  std::span<const uint8_t> take(uint64_t count);
  uint64_t number(size_t size);
  std::string_view line();

  void push(PickleValue value);
  PickleIndex pop();
  std::vector<PickleIndex> pop_to_mark();
  PickleValue& top(Kind kind, const char* what);

  bool step(uint8_t opcode);  // false: the program has ended
  bool step_scalar(uint8_t opcode);
  bool step_container(uint8_t opcode);
  void push_integer(int64_t value) { push({Kind::Integer, value, {}, {}}); }
  void push_tuple(size_t count);
  void push_global();
  void push_long();
  void append(std::vector<PickleIndex> items, Kind kind);
  void reduce();
  void build();
  void put(uint64_t slot) {
    if (stack_.empty()) fail("keeps a value of an empty stack, expected one on it");
    memo_[slot] = stack_.back();
  }
  void get(uint64_t slot);

  Pickle& out_;
  std::span<const uint8_t> bytes_;
  std::string where_;
  std::span<const std::string_view> globals_;
  size_t at_ = 0;
  std::vector<PickleIndex> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, PickleIndex> memo_;
};

std::span<const uint8_t> PickleMachine::take(uint64_t count) {
  if (count > bytes_.size() - at_) fail("ends within an operation, expected the rest of it");
  at_ += static_cast<size_t>(count);
  return bytes_.subspan(at_ - static_cast<size_t>(count), static_cast<size_t>(count));
}

uint64_t PickleMachine::number(size_t size) {
  uint64_t value = 0;
  const auto raw = take(size);
  for (size_t i = 0; i < size; ++i) value |= uint64_t{raw[i]} << (8 * i);
  return value;
}

std::string_view PickleMachine::line() {
  const auto rest = bytes_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), uint8_t{'\n'});
  const auto raw = take(static_cast<uint64_t>(end - rest.begin()));
  take(1);
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

void PickleMachine::push(PickleValue value) {
  out_.values_.push_back(std::move(value));
  stack_.push_back(static_cast<PickleIndex>(out_.values_.size() - 1));
}

PickleIndex PickleMachine::pop() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) fail("takes a value that is not there, expected one on the stack");
  const PickleIndex index = stack_.back();
  stack_.pop_back();
  return index;
}

std::vector<PickleIndex> PickleMachine::pop_to_mark() {
  if (marks_.empty()) fail("closes a list that was not opened, expected a mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleIndex> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::top(Kind kind, const char* what) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor || out_.at(stack_.back()).kind != kind)
    fail(fmt::format("adds to something else, expected {} on the stack", what));
  return out_.values_[static_cast<size_t>(stack_.back())];
}

void PickleMachine::push_tuple(size_t count) {
  std::vector<PickleIndex> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  push({Kind::Tuple, 0, {}, std::move(items)});
}

/// The two lines lie side by side in the bytes but for the line break between them.
void PickleMachine::push_global() {
  const std::string_view module = line(), name = line();
  const std::string full = std::string(module) + " " + std::string(name);
  const auto allowed = std::find(globals_.begin(), globals_.end(), full);
  if (allowed == globals_.end())
    fail(fmt::format("asks for {}.{}, expected only what a dict of tensors needs", module, name));
  push({Kind::Global, 0, *allowed, {}});
}

/// Whole numbers of up to 8 bytes, two's complement.
void PickleMachine::push_long() {
  const size_t size = static_cast<size_t>(number(1));
  if (size > 8) fail(fmt::format("has a number of {} bytes, expected at most 8", size));
  uint64_t value = number(size);
  if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) value |= ~uint64_t{0} << (8 * size);
  push_integer(static_cast<int64_t>(value));
}

void PickleMachine::append(std::vector<PickleIndex> items, Kind kind) {
  PickleValue& target = top(kind, kind == Kind::Dict ? "a dict" : "a list");
  if (kind == Kind::Dict && items.size() % 2 != 0)
    fail("a dict gets a key without a value, expected pairs");
  target.items.insert(target.items.end(), items.begin(), items.end());
}

void PickleMachine::reduce() {
  const PickleIndex arguments = pop(), callee = pop();
  if (out_.at(callee).kind != Kind::Global || out_.at(arguments).kind != Kind::Tuple)
    fail("calls something else than a name with a tuple, expected that");
  if (out_.at(callee).text == kOrderedDict) {
    if (!out_.at(arguments).items.empty())
      fail("makes an OrderedDict from values, expected an empty one");
    return push({Kind::Dict, 0, {}, {}});
  }
  push({Kind::Call, 0, {}, {callee, arguments}});
}

/// A state_dict carries `_metadata` as an attribute: of no use here.
void PickleMachine::build() {
  pop();
  top(Kind::Dict, "a dict");
}

void PickleMachine::get(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end())
    fail(fmt::format("uses value {}, which was not kept, expected one that was", slot));
  stack_.push_back(found->second);
}

bool PickleMachine::step_scalar(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push({});
      return true;
    case 0x88:
    case 0x89:
      push({Kind::Boolean, opcode == 0x88 ? 1 : 0, {}, {}});
      return true;
    case 'J':
      push_integer(static_cast<int32_t>(number(4)));
      return true;
    case 'K':
      push_integer(static_cast<int64_t>(number(1)));
      return true;
    case 'M':
      push_integer(static_cast<int64_t>(number(2)));
      return true;
    case 0x8a:
      push_long();
      return true;
    case 'G':
      take(8);
      push({Kind::Real, 0, {}, {}});
      return true;
    case 'X': {
      const auto text = take(number(4));
      push({Kind::Text, 0, {reinterpret_cast<const char*>(text.data()), text.size()}, {}});
      return true;
    }
    case 'c':
      push_global();
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ')':
      push_tuple(0);
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(opcode - 0x84U);
      return true;
    case 't':
      push({Kind::Tuple, 0, {}, pop_to_mark()});
      return true;
    case ']':
      push({Kind::List, 0, {}, {}});
      return true;
    case 'a':
      append({pop()}, Kind::List);
      return true;
    case 'e':
      append(pop_to_mark(), Kind::List);
      return true;
    case '}':
      push({Kind::Dict, 0, {}, {}});
      return true;
    case 's': {
      const PickleIndex value = pop(), key = pop();
      append({key, value}, Kind::Dict);
      return true;
    }
    case 'u':
      append(pop_to_mark(), Kind::Dict);
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step(uint8_t opcode) {
  if (step_scalar(opcode) || step_container(opcode)) return true;
  switch (opcode) {
    case 'Q':
      push({Kind::Persistent, 0, {}, {pop()}});
      return true;
    case 'R':
      reduce();
      return true;
    case 'b':
      build();
      return true;
    case 'q':
      put(number(1));
      return true;
    case 'r':
      put(number(4));
      return true;
    case 'h':
      get(number(1));
      return true;
    case 'j':
      get(number(4));
      return true;
    case '.':
      return false;
    default:
      fail(fmt::format("operation 0x{:02x}, expected one of those that a dict of tensors needs",
                       opcode));
  }
}

void PickleMachine::run() {
  const auto start = take(2);
  if (start[0] != 0x80 || start[1] != 2)
    fail("does not open as protocol 2, expected what torch.save writes");
  for (int64_t done = 0; step(take(1)[0]); ++done)
    if (done == kMostOperations)
      fail(fmt::format("has more than {} operations, expected a dict of some hundred tensors",
                       kMostOperations));
  if (stack_.size() != 1 || !marks_.empty())
    fail(fmt::format("ends with {} values, expected one", stack_.size()));
  out_.root_ = stack_.back();
}

Pickle::Pickle(std::span<const uint8_t> bytes, std::string where,
               std::span<const std::string_view> globals) {
  PickleMachine(*this, bytes, std::move(where), globals).run();
}

}  // namespace medusa
