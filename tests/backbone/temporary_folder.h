// A folder of its own for each test, removed at the end.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace medusa {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(info->test_suite_name()) + "." + info->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The message of the UserError that run() throws, "<>" in place of the folder; "no error" if none.
template <typename Run>
std::string user_error(const TemporaryFolder& folder, const Run& run) {
  try {
    run();
  } catch (const UserError& error) {
    std::string text = error.what();
    for (size_t at; (at = text.find(folder.path().string())) != std::string::npos;)
      text.replace(at, folder.path().string().size(), "<>");
    return text;
  }
  return "no error";
}

}  // namespace medusa
