// Parts that a text must have.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace medusa::fixtures {

inline void expect_parts(const std::string& whole, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(whole.find(part), std::string::npos) << part << "\n" << whole;
}

}  // namespace medusa::fixtures
