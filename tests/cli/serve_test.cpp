// medusa serve through the executable: its end.
#include "../base/free_port.h"
#include "program.h"

namespace medusa::cli {
namespace {

TEST(Serve, ASecondSignalEndsAnAnswerThatRuns) {
  const CliFixture place;
  // A stream of 200 tokens is open when the signals come; bash has sockets.
  write_text(place / "ask.sh", R"(
'MEDUSA' serve --config run.yaml --port 0 >served.txt 2>err.txt & server=$!
for i in $(seq 300); do grep -qs 'http://' served.txt && break; sleep 0.1; done
port=$(sed -n 's/.*http:..127.0.0.1:\([0-9]*\).*/\1/p' served.txt | head -n 1)
body='{"prompt": "Once", "max_tokens": 200, "ignore_eos": true, "stream": true}'
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
head -c 300 <&3 >/dev/null
kill -TERM $server; sleep 0.05; kill -TERM $server 2>/dev/null
wait $server; echo "ended with $?"
cat <&3 | grep -c 'data: \[DONE\]' || true
)");
  const std::string run = "cd '" + (place / ".").string() +
                          "' && sed -i \"s|MEDUSA|" MEDUSA_BINARY
                          "|\" ask.sh && timeout 60 bash ask.sh >out.txt 2>&1 </dev/null";
  EXPECT_EQ(std::system(run.c_str()), 0);
  EXPECT_EQ(file_text(place / "out.txt"), "ended with 0\n0\n") << file_text(place / "err.txt");
}

/// Starts a server, asks it for its health from the first moment on, and goes on with more lines.
/// @returns  what they printed, after the first answer.
std::string first_health(const CliFixture& place, const std::string& more) {
  const std::string port = std::to_string(fixtures::free_port());
  write_text(place / "ask.sh",
             "'" MEDUSA_BINARY "' serve --config run.yaml --port " + port +
                 " >served.txt 2>err.txt & server=$!\n"
                 "health() { (exec 3<>/dev/tcp/127.0.0.1/" +
                 port +
                 " && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | "
                 "cut -d ' ' -f 2) 2>/dev/null; }\n"
                 "said=; while [ -z \"$said\" ] && kill -0 $server; do said=$(health); done\n"
                 "echo $said\n" +
                 more + "kill -TERM $server; wait $server; echo \"ended with $?\"\n");
  const std::string run =
      "cd '" + (place / "").string() + "' && timeout 60 bash ask.sh >out.txt 2>&1";
  EXPECT_EQ(std::system(run.c_str()), 0) << file_text(place / "err.txt");
  return file_text(place / "out.txt");
}

TEST(Serve, SaysThatItLoads) {
  const CliFixture place;
  EXPECT_EQ(first_health(place, "while [ \"$(health)\" != 200 ]; do sleep 0.1; done\n"),
            "503\nended with 0\n");
}

TEST(Serve, ASignalEndsItsLoading) {
  const CliFixture place;
  EXPECT_EQ(first_health(place, ""), "503\nended with 143\n");
  EXPECT_EQ(file_text(place / "served.txt"), "");
}

TEST(Serve, ANameThatClientsCannotWriteIsRefused) {
  const CliFixture place;
  const ProcessResult ran =
      place.run("serve '" + CliFixture::model() + "' --port 0 --name \"$(printf 'a\\nb')\"");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("the model's name is 'a\\nb', expected UTF-8"), std::string::npos)
      << ran.err;
}

TEST(Serve, AModelWithoutAChatTemplateIsServedForTexts) {
  const CliFixture place;
  const std::string serve =
      "serve '" + CliFixture::model() + "' --port 0 --threads 1 --context 256";
  const ProcessResult texts = place.run_until("INT", 4, serve);
  EXPECT_NE(texts.out.find("/v1/completions -d '{\"prompt\""), std::string::npos) << texts.out;
  EXPECT_NE(texts.err.find("note: the model has no chat template"), std::string::npos) << texts.err;
  const ProcessResult chats =
      place.run_until("INT", 4, serve + " --set backbone.chat_template=plain");
  EXPECT_NE(chats.out.find("/v1/chat/completions -d"), std::string::npos) << chats.out << chats.err;
  EXPECT_EQ(chats.err.find("no chat template"), std::string::npos) << chats.err;
}

TEST(Serve, SharesAnswersUnlessItIsTold) {
  const CliFixture place;
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string serve = "serve --config run.yaml --port 0";
  const ProcessResult shares = place.run_until("INT", 4, serve);
  EXPECT_TRUE(has(shares.out, "drafter merge (of ") && has(shares.out, "shared")) << shares.out;
  const ProcessResult alone = place.run_until("INT", 4, serve + " --no-share");
  EXPECT_TRUE(has(alone.out, "drafter prompt_lookup (of ")) << alone.out << alone.err;
  EXPECT_FALSE(has(alone.out, "shared")) << alone.out;
  for (const std::string& refused : {serve + " --no-share --drafter shared",
                                     std::string("generate --config run.yaml --drafter "
                                                 "shared --prompt Once"),
                                     serve + " --set generate.shared.megabytes=0"}) {
    const ProcessResult ran = place.run(refused);
    EXPECT_EQ(ran.status, 2) << refused;
    EXPECT_EQ(ran.out, "") << refused;
    EXPECT_TRUE(has(ran.err, "shared")) << ran.err;
  }
}

}  // namespace
}  // namespace medusa::cli
