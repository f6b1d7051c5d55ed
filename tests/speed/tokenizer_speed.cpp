// How many tokens a second a tokenizer makes of a text, on one thread. Not a test: built and run by
// tools/dev/bench_tokenizer.py, which sets the packages of other projects beside it.
//
//   tokenizer_speed MODEL TEXT [ROUNDS]
//
// Prints "tokens seconds" of the quickest round; seconds are of encoding alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/tokenizer/tokenizer.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: tokenizer_speed MODEL TEXT [ROUNDS]\n");
    return 2;
  }
  try {
    const auto tokenizer = medusa::load_tokenizer(argv[1]);
    const std::string text = medusa::read_file(argv[2]);
    double best = 1e9;
    size_t count = 0;
    for (int rounds = argc > 3 ? std::stoi(argv[3]) : 5; rounds > 0; --rounds) {
      const auto start = std::chrono::steady_clock::now();
      count = tokenizer->encode(text, /*parse_special=*/false).size();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count());
    }
    fmt::print("{} {}\n", count, best);
    return 0;
  } catch (const medusa::UserError& error) {
    fmt::print(stderr, "tokenizer_speed: {}\n", error.what());
    return 2;
  }
}
