// LibTorch's wheel holds c10d and gloo, and c10d's headers, but not gloo's, which one of them
// includes under five names (train/CMakeLists.txt leads all five here). These are the types that it
// names. Nothing of ours calls them or looks inside: objects of gloo are made by c10d, in the
// library, and pass by pointer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport

namespace rendezvous {

/// Only c10d's adapter is made of it, and only in the library.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous

}  // namespace gloo
