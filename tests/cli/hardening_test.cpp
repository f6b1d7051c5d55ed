// Both halves of the program as they were linked: cmake/Hardening.cmake asks for what is looked for
// here.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

class Hardening : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Programs, Hardening,
                         testing::Values(MEDUSA_BINARY, MEDUSA_BINARY "-core"));

/// What a command of binutils prints about the program. Empty when the command is missing or fails.
std::string printed(const std::string& command) {
  const std::string line = "LC_ALL=C " + command + " '" + Hardening::GetParam() + "' 2>/dev/null";
  FILE* const pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  return pclose(pipe) == 0 ? text : std::string();
}

bool contains(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

TEST_P(Hardening, TheProgramIsLoadedAtAddressesThatNobodyCanGuess) {
  EXPECT_TRUE(contains(printed("readelf -W -h"), "DYN (Position-Independent Executable file)"));
}

TEST_P(Hardening, TheTablesOfTheLoaderAreReadOnlyBeforeMainBegins) {
  EXPECT_TRUE(contains(printed("readelf -W -l"), "GNU_RELRO"));
  const std::string dynamic = printed("readelf -W -d");
  EXPECT_TRUE(contains(dynamic, "BIND_NOW")) << dynamic;
}

TEST_P(Hardening, NothingOnTheStackIsExecuted) {
  const std::string segments = printed("readelf -W -l");
  const size_t stack = segments.find("GNU_STACK");
  ASSERT_NE(stack, std::string::npos) << segments;
  const std::string line = segments.substr(stack, segments.find('\n', stack) - stack);
  EXPECT_TRUE(contains(line, "RW ")) << line;
  EXPECT_FALSE(contains(line, "RWE")) << line;
}

TEST_P(Hardening, FunctionsCheckTheirStackAndTheirCopies) {
  const std::string symbols = printed("readelf -W --dyn-syms");
  EXPECT_TRUE(contains(symbols, "__stack_chk_fail")) << "-fstack-protector-strong";
#ifdef NDEBUG  // needs an optimizer
  EXPECT_TRUE(contains(symbols, "_chk@")) << "-D_FORTIFY_SOURCE";
  EXPECT_TRUE(contains(symbols, "__memcpy_chk")) << "-D_FORTIFY_SOURCE";
#endif
}

// Debian's start-up files carry no CET mark, so the linker gives the program none; the code has
// the landing pads all the same.
TEST_P(Hardening, AnIndirectJumpFindsALandingPad) {
  EXPECT_TRUE(contains(printed("objdump -d --no-show-raw-insn --disassemble=main"), "endbr64"));
}

}  // namespace
