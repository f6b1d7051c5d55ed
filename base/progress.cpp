#include "base/progress.h"

#include <utility>

#include "base/elapsed.h"

namespace medusa {
namespace {

constexpr double kTellEvery = 0.1;  // seconds

}  // namespace

Progress::Progress(ProgressFunction tell, std::string stage, std::string unit, int64_t total)
    : tell_(std::move(tell)), began_(std::chrono::steady_clock::now()), told_at_(began_) {
  now_.stage = std::move(stage);
  now_.unit = std::move(unit);
  now_.total = total;
}

Progress::~Progress() {
  if (!told_ || now_.finished) return;
  now_.given_up = true;
  try {
    tell({});
  } catch (...) {  // the error that gave the stage up is the one to hear of
  }
}

void Progress::tell(const std::string& note) {
  if (!tell_) return;
  now_.note = note;
  now_.seconds = seconds_since(began_);
  told_ = true;
  told_at_ = std::chrono::steady_clock::now();
  tell_(now_);
}

void Progress::update(int64_t done, const std::string& note) {
  now_.done = done;
  if (!told_ || seconds_since(told_at_) >= kTellEvery) tell(note);
}

void Progress::finish(const std::string& note) {
  if (now_.finished) return;
  now_.finished = true;
  tell(note);
}

}  // namespace medusa
