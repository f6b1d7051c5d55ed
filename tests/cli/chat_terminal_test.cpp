// medusa chat on a terminal: keys, colors, signals.
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/shown_text.h"
#include "started_program.h"

namespace medusa::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char *kCtrlC = "\x03", *kCtrlD = "\x04", *kUp = "\x1b[A";
const std::string kSmol = MEDUSA_SOURCE_DIR "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The program in a session of its own on a terminal of 30 lines, as a person has it.
class Typist {
 public:
  Typist(const CliFixture& place, const Words& arguments, const std::string& variables = "") {
    Words words{"env", "-u", "NO_COLOR", "TERM=xterm-256color"};
    if (!variables.empty()) words.push_back(variables);
    words.insert(words.end(), {MEDUSA_BINARY, "chat"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> given;
    for (std::string& word : words) given.push_back(word.data());
    given.push_back(nullptr);
    winsize size{.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = ::forkpty(&side_, nullptr, nullptr, &size);
    if (process_ != 0) return;
    if (::chdir((place / "").c_str()) == 0) ::execvp("env", given.data());
    ::_exit(127);
  }
  Typist(const Typist&) = delete;
  Typist& operator=(const Typist&) = delete;
  ~Typist() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::close(side_);
  }

  void type(const std::string& keys) const {
    EXPECT_EQ(::write(side_, keys.data(), keys.size()), std::ssize(keys));
  }

  /// What comes until this text has come, and with it.
  std::string until(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      const size_t at = came_.find(text);
      if (at != std::string::npos) {
        std::string out = came_.substr(0, at + text.size());
        came_.erase(0, out.size());
        return out;
      }
      if (std::chrono::steady_clock::now() > deadline || !read_some()) {
        ADD_FAILURE() << "expected '" << shown_text(text) << "', came: " << shown_text(came_);
        return std::exchange(came_, {});
      }
    }
  }
  /// The prompt of a new line: what is typed behind it goes to the editor, which may write the
  /// prompt again to reach a place in the same line.
  std::string until_prompt() { return until("\n> "); }

  /// Types a message. @returns what comes until the next prompt.
  std::string say(const std::string& message) {
    type(message + "\r");
    return until_prompt();
  }

  /// Ends the program with Ctrl-D. @returns its exit status.
  int leave() {
    type(kCtrlD);
    return wait();
  }
  int wait() {
    while (read_some()) {
    }
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(process_, SIGKILL);
      ::usleep(1000);
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(side_, TIOCSWINSZ, &size), 0);
  }
  void signal(int number) const { ::kill(process_, number); }

 private:
  /// @returns false: the program has ended, or says nothing for a minute.
  bool read_some() {
    pollfd readable{side_, POLLIN, 0};
    if (::poll(&readable, 1, 60000) <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(side_, buffer, sizeof buffer);
    if (got <= 0) return false;
    came_.append(buffer, static_cast<size_t>(got));
    return true;
  }

  pid_t process_ = -1;
  int side_ = -1;
  std::string came_;
};

/// Without escape sequences of colors, places and lines, and carriage returns.
std::string without_escapes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') continue;
    if (text[i] != '\x1b') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      i = text.find_first_of("ABCDHJKhlmr", i + 2);
      if (i == std::string::npos) break;
    } else {
      ++i;
    }
  }
  return out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Words kPlain{"--config", "run.yaml", "--drafter", "none"};

TEST(ChatTerminal, ALongLineOutlivesASmallerWindow) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  typist.type(std::string(600, 'x') + "y");
  typist.until("y");
  typist.resize(4, 10);
  typist.type("zz");  // where the cursor would stand below the last row
  typist.until("z");
  typist.resize(50, 200);
  typist.type("z");
  typist.type(kCtrlC);
  typist.until_prompt();
  EXPECT_EQ(typist.leave(), 0);
}

TEST(ChatTerminal, AnswersAndCommandsTakeTurns) {
  const CliFixture place;
  const std::string answer =
      place.run("generate --config run.yaml --drafter none --prompt 'Tom said'").out;
  Typist typist(place, kPlain);
  EXPECT_TRUE(has(typist.until_prompt(), "tiny_model, drafter none; /help lists the commands"));
  const std::string said = without_escapes(typist.say("Tom said"));
  EXPECT_TRUE(has(said, answer)) << said;
  EXPECT_TRUE(has(said, "24 tokens, ")) << said;
  EXPECT_TRUE(has(said, "1.00 tokens per step; cut off there")) << said;
  EXPECT_TRUE(has(typist.say("/regen"), "at temperature 0 the answer stays the same"));
  typist.say("/save chat.json");
  EXPECT_TRUE(has(typist.say("/undo"), "taken back: Tom said"));
  EXPECT_TRUE(has(typist.say("/undo"), "nothing was said yet"));
  EXPECT_TRUE(has(typist.say("/load chat.json"), "1 messages with their answers"));
  EXPECT_TRUE(has(typist.say("/undo"), "taken back: Tom said"));
  EXPECT_TRUE(has(typist.say("/sav x"), "did you mean '/save'?")) << "and the program goes on";
  EXPECT_TRUE(has(typist.say("/stats"), "48 tokens, "));
  EXPECT_TRUE(has(typist.say("/help"), "found by lookup")) << "the colors are explained";
  typist.type("/quit\r");
  EXPECT_EQ(typist.wait(), 0);
}

TEST(ChatTerminal, LinesAreEditedAndRemembered) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  const std::string right = "\x1b[C";  // corrected to /seed 1
  EXPECT_FALSE(has(typist.say("/sead 1\x01" + right + right + right + "\x04" + "e"), "unknown"));
  EXPECT_TRUE(has(typist.say("/system Größe"), "system message set"));
  EXPECT_TRUE(has(typist.say(std::string(kUp) + kUp + "x"), "/seed is '1x'")) << "two lines up";
  typist.say(std::string(kUp) + kUp + kUp);  // the same again
  typist.say("Tom said");
  typist.say("/save chat.json");
  EXPECT_TRUE(has(file_text(place / "chat.json"), "Größe"));
  EXPECT_EQ(typist.leave(), 0);
}

TEST(ChatTerminal, SeveralLinesAreTypedBetweenMarks) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  typist.type("\"\"\"\r");
  typist.until("… ");
  typist.type("Tom said\r");
  typist.until("… ");
  typist.type("/help\"\"\"\r");
  typist.until_prompt();
  typist.say("/save chat.json");
  EXPECT_TRUE(has(file_text(place / "chat.json"), R"("Tom said\n/help")"));
  // Ctrl-C gives a message up that was begun.
  typist.type("\"\"\"\r");
  typist.until("… ");
  typist.type(kCtrlC);
  typist.until_prompt();
  EXPECT_TRUE(has(typist.say("/undo"), "taken back: Tom said"));
  EXPECT_EQ(typist.leave(), 0);
}

TEST(ChatTerminal, CtrlCClearsTheLineAndCtrlDLeaves) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  for (int i = 0; i < 3; ++i) {
    typist.type("/quit");
    typist.until("/quit");
    typist.type(kCtrlC);
    typist.until_prompt();
  }
  EXPECT_TRUE(has(typist.say("/undo"), "nothing was said yet"));
  EXPECT_EQ(typist.leave(), 0);
}

TEST(ChatTerminal, SigtermLeaves) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  typist.signal(SIGTERM);
  EXPECT_EQ(typist.wait(), 143);
}

TEST(ChatTerminal, CtrlCStopsTheAnswerAndNotTheProgram) {
  const CliFixture place;
  Typist typist(place, {kSmol, "--drafter", "none", "--max-tokens", "1900"});
  typist.until_prompt();
  typist.type("Write a long story about a dragon, a princess and a far country.\r");
  typist.until("tokens per step; Ctrl-C stops");
  typist.type(kCtrlC);
  typist.type(kCtrlC);  // impatient
  const std::string end = without_escapes(typist.until("; stopped"));
  EXPECT_FALSE(has(end, "1900 tokens")) << end;
  typist.until_prompt();
  // What was there stays, and the conversation goes on.
  typist.say("/save chat.json");
  const auto saved = nlohmann::json::parse(file_text(place / "chat.json"));
  ASSERT_EQ(saved.at("messages").size(), 2U);
  EXPECT_NE(saved.at("messages").at(1).at("content"), "");
  typist.say("/undo");
  EXPECT_EQ(typist.leave(), 0);
}

class ChatTerminalOfARun : public TrainedRun {};

TEST_F(ChatTerminalOfARun, AcceptedRunsAreTinted) {
  const std::string answer =
      place_.run("generate --config run.yaml --drafter none --prompt 'Once upon a time'").out;
  const Words merge{"--config", "run.yaml", "--drafter", "medusa"};
  Typist typist(place_, merge);
  typist.until_prompt();
  const std::string said = typist.say("Once upon a time");
  EXPECT_TRUE(has(said, "\x1b[36m")) << shown_text(said);
  EXPECT_TRUE(has(without_escapes(said), answer)) << "the text is the same";
  EXPECT_EQ(typist.leave(), 0);

  for (const char* variable : {"NO_COLOR=1", "TERM=dumb"}) {
    Typist plain(place_, merge, variable);
    plain.until_prompt();
    const std::string colorless = plain.say("Once upon a time");
    EXPECT_FALSE(has(colorless, "\x1b[36m") || has(colorless, "\x1b[2m")) << variable;
    EXPECT_TRUE(has(without_escapes(colorless), answer)) << variable;
    EXPECT_EQ(plain.leave(), 0);
  }
}

TEST(ChatTerminal, ControlCharactersOfAnAnswerAreShown) {
  const CliFixture place;
  // So hot that all tokens are as probable, among them those of single bytes.
  const std::string hot = "--temperature 1000 --max-tokens 200";
  const ProcessResult ran =
      place.run("generate --config run.yaml --drafter none " + hot + " --json --prompt Once");
  const auto answer = nlohmann::json::parse(ran.out).at("answers").at(0).at("text");
  const std::string text = answer.get<std::string>();
  ASSERT_NE(text, shown_text(text)) << "the model wrote no control character";
  for (const char* variable : {"NO_COLOR=1", "LANG=C"}) {
    Typist typist(place,
                  {"--config", "run.yaml", "--drafter", "none", "--temperature", "1000",
                   "--max-tokens", "200"},
                  variable);
    typist.until_prompt();
    typist.type("Once\r");
    const std::string said = without_escapes(typist.until(" tokens/s, "));
    EXPECT_TRUE(has(said, shown_text(text))) << variable << said;
    typist.until_prompt();
    EXPECT_EQ(typist.leave(), 0);
  }
}

TEST(ChatTerminal, TheTerminalIsLeftAsItWas) {
  const CliFixture place;
  Typist typist(place, kPlain);
  typist.until_prompt();
  const std::string said = typist.say("Tom said");
  EXPECT_TRUE(has(said, "\x1b[1;29r")) << "the last line is kept for the speed";
  EXPECT_GT(said.rfind("\x1b[r"), said.rfind("\x1b[1;29r")) << "and given back";
  EXPECT_EQ(typist.leave(), 0);
}

}  // namespace
}  // namespace medusa::cli
