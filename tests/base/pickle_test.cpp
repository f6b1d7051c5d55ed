#include "base/formats/pickle.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;
using Kind = PickleValue::Kind;
using namespace std::string_literals;

constexpr std::array<std::string_view, 2> kGlobals{"collections OrderedDict", "torch Make"};

/// A pickle of protocol 2 around a program.
Pickle parse(const std::string& program) {
  static std::string kept;  // texts point into it
  kept = "\x80\x02" + program;
  return Pickle({reinterpret_cast<const uint8_t*>(kept.data()), kept.size()}, "a.pt", kGlobals);
}

/// What is said about a program, between the place and the remedy.
std::string error(const std::string& program) {
  const std::string text = error_text([&] { parse(program); });
  const std::string remedy =
      "; nothing of it was executed: save the tensors as safetensors, or choose another file";
  EXPECT_TRUE(text.starts_with("a.pt: byte ")) << text;
  EXPECT_TRUE(text.ends_with(remedy)) << text;
  const size_t begin = text.find("pickle: ") + 8;
  return text.substr(begin, text.size() - remedy.size() - begin);
}

TEST(Pickle, ReadsNumbersAndTexts) {
  const auto integer = [](const std::string& program) {
    const Pickle pickle = parse(program);
    EXPECT_EQ(pickle.root().kind, Kind::Integer);
    return pickle.root().integer;
  };
  EXPECT_EQ(integer("K\xff."), 255);
  EXPECT_EQ(integer("M\x01\x02."), 513);
  EXPECT_EQ(integer("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(integer("\x8a\x00."s), 0);
  EXPECT_EQ(integer("\x8a\x02\x00\xff."s), -256);
  EXPECT_EQ(integer("\x8a\x05\x00\x00\x00\x00\x01."s), int64_t{1} << 32);
  EXPECT_EQ(parse("X\x03\x00\x00\x00"
                  "abc."s)
                .root()
                .text,
            "abc");
  EXPECT_EQ(parse("\x88.").root().integer, 1);
  EXPECT_EQ(parse("N.").root().kind, Kind::None);
}

TEST(Pickle, ReadsContainersAndWhatWasKept) {
  const Pickle pickle = parse(
      "}q\x01(K\x01K\x02\x86K\x03]K\x04"
      "ah\x01u.");
  const PickleValue& dict = pickle.root();
  ASSERT_EQ(dict.kind, Kind::Dict);
  ASSERT_EQ(dict.items.size(), 4U);
  EXPECT_EQ(pickle.item(dict, 0).kind, Kind::Tuple);
  EXPECT_EQ(pickle.item(pickle.item(dict, 0), 1).integer, 2);
  EXPECT_EQ(pickle.item(dict, 1).integer, 3);
  EXPECT_EQ(pickle.item(pickle.item(dict, 2), 0).integer, 4);
  EXPECT_EQ(&pickle.item(dict, 3), &dict) << "a dict may hold itself";
}

TEST(Pickle, KeepsCallsAsRecordsAndReadsAnEmptyOrderedDict) {
  const Pickle pickle = parse("ctorch\nMake\nK\x07\x85R.");
  ASSERT_EQ(pickle.root().kind, Kind::Call);
  EXPECT_EQ(pickle.item(pickle.root(), 0).text, "torch Make");
  EXPECT_EQ(pickle.item(pickle.item(pickle.root(), 1), 0).integer, 7);
  const Pickle dict = parse("ccollections\nOrderedDict\n)RK\x01K\x02s}b.");
  ASSERT_EQ(dict.root().kind, Kind::Dict);
  EXPECT_EQ(dict.item(dict.root(), 1).integer, 2);
}

TEST(Pickle, RefusesEveryNameThatIsNotListed) {
  EXPECT_EQ(error_text([] { parse("cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s); }),
            "a.pt: byte 13 of the pickle: asks for os.system, expected only what a dict of tensors "
            "needs; nothing of it was executed: save the tensors as safetensors, or choose another "
            "file");
}

TEST(Pickle, RefusesEveryOtherOperation) {
  const std::string known = "N\x88\x89JKM\x8aGXc()\x85\x86\x87t]ae}suQRbqrhj.";
  for (int code = 0; code < 256; ++code) {
    const char opcode = static_cast<char>(code);
    if (known.find(opcode) != std::string::npos) continue;
    EXPECT_NE(error(std::string(1, opcode)).find("expected one of those that a dict of tensors"),
              std::string::npos)
        << code;
  }
}

TEST(Pickle, RefusesWhatDoesNotAddUp) {
  EXPECT_EQ(error("K"), "ends within an operation, expected the rest of it");
  EXPECT_EQ(error("K\x01"), "ends within an operation, expected the rest of it");
  EXPECT_EQ(error("X\xff\xff\xff\xff"
                  "abc"),
            "ends within an operation, expected the rest of it");
  EXPECT_EQ(error("."), "ends with 0 values, expected one");
  EXPECT_EQ(error("NN."), "ends with 2 values, expected one");
  EXPECT_EQ(error("(."), "ends with 0 values, expected one");
  EXPECT_EQ(error("\x85."), "takes a value that is not there, expected one on the stack");
  EXPECT_EQ(error("K\x01(\x85."), "takes a value that is not there, expected one on the stack");
  EXPECT_EQ(error("t."), "closes a list that was not opened, expected a mark");
  EXPECT_EQ(error("NK\x01K\x02s."), "adds to something else, expected a dict on the stack");
  EXPECT_EQ(error("}(K\x01u."), "a dict gets a key without a value, expected pairs");
  EXPECT_EQ(error("h\x05."), "uses value 5, which was not kept, expected one that was");
  EXPECT_EQ(error("q\x05."), "keeps a value of an empty stack, expected one on it");
  EXPECT_EQ(error("K\x01)R."), "calls something else than a name with a tuple, expected that");
  EXPECT_EQ(error("ccollections\nOrderedDict\nK\x01\x85R."),
            "makes an OrderedDict from values, expected an empty one");
  EXPECT_EQ(error("\x8a\x09"), "has a number of 9 bytes, expected at most 8");
}

TEST(Pickle, RefusesOtherProtocolsAndEndlessPrograms) {
  const std::string four = "\x80\x04N.";
  EXPECT_NE(
      error_text([&] {
        Pickle({reinterpret_cast<const uint8_t*>(four.data()), four.size()}, "a.pt", kGlobals);
      }).find("does not open as protocol 2"),
      std::string::npos);
  EXPECT_EQ(error(std::string(500'000, ')')),
            "has more than 400000 operations, expected a dict of some hundred tensors");
}

}  // namespace
}  // namespace medusa
