// Damages files: a few random changes of the kinds that readers stumble over.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace medusa::fuzz {

class Mutator {
 public:
  /// @param tokens  words of the format.
  Mutator(uint64_t seed, std::vector<std::string> tokens);

  /// One to eight changes.
  /// @param other  a file to take pieces from.
  std::string mutate(std::string bytes, const std::string& other);

  /// A number below `below`, which is at least 1.
  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }

 private:
  void change(std::string& bytes, const std::string& other);
  void write_integer(std::string& bytes);
  void replace_digits(std::string& bytes);
  void repeat_range(std::string& bytes);

  std::mt19937_64 random_;
  std::vector<std::string> tokens_;
};

}  // namespace medusa::fuzz
