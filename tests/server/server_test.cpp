// The server as its clients see it: texts, streams, and what happens when they leave.
#include "server/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "server/api/completion_request.h"
#include "tests/server/server_fixture.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::Client;
using fixtures::events_of;
using fixtures::http_request;
using nlohmann::json;

class ServerTest : public fixtures::ServerFixture {};

TEST_F(ServerTest, GreedyTextIsThePlainText) {
  const json answer = complete({{"prompt", "Once upon a time"}, {"max_tokens", 60}});
  EXPECT_EQ(answer["choices"][0]["text"], tiny_->alone("Once upon a time", 60, 0, 1));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"].get<int>() +
                                                 answer["usage"]["completion_tokens"].get<int>());
}

TEST_F(ServerTest, RequestsThatDifferInEverythingGetTheTextsTheyGetAlone) {
  const std::vector<std::string> prompts{"Once upon a time", "Lily and Tom", "One day, a boy",
                                         "The big dog"};
  const std::vector<std::string> drafters{"none", "prompt_lookup", "jacobi", "lookahead"};
  std::vector<std::future<std::string>> texts;
  for (size_t i = 0; i < 16; ++i)
    texts.push_back(std::async(std::launch::async, [&, i] {
      const json answer = complete({{"prompt", prompts[i % 4]},
                                    {"max_tokens", 20 + i},
                                    {"temperature", i % 3 == 0 ? 0.0 : 0.8},
                                    {"seed", i},
                                    {"medusa", {{"drafter", drafters[(i / 4) % 4]}}}});
      return answer["choices"][0]["text"].get<std::string>();
    }));
  for (size_t i = 0; i < 16; ++i)
    EXPECT_EQ(texts[i].get(),
              tiny_->alone(prompts[i % 4], static_cast<int32_t>(20 + i), i % 3 == 0 ? 0.0 : 0.8, i))
        << i;
}

TEST_F(ServerTest, BodiesThatAreReadBesideTheOthersAreAnsweredAsShortOnes) {
  const json chat{{"messages", {{{"role", "user"}, {"content", "Once"}}}}, {"max_tokens", 9}};
  const std::vector<std::pair<std::string, json>> requests{
      {"/v1/completions", {{"prompt", "Once upon a time"}, {"max_tokens", 9}, {"user", "me"}}},
      {"/v1/chat/completions", chat},
      {"/v1/messages", chat},
      {"/v1/messages/count_tokens", chat},
      {"/v1/responses", {{"input", "Once"}, {"max_output_tokens", 9}}},
      {"/tokenize", {{"prompt", "Once upon a time"}}},
      {"/detokenize", {{"tokens", {1, 2, 3}}}},
      {"/tokenize", {{"prompt", 7}}},
      {"/v1/completions", {{"prompt", "Once"}, {"model", "another"}}}};
  const auto without_ids = [](const fixtures::HttpReply& reply) {
    json answer = reply.json();
    for (const char* key : {"id", "created", "created_at", "completed_at"}) answer.erase(key);
    if (answer.contains("output"))
      for (json& each : answer["output"]) each.erase("id");
    return fmt::format("{} {}", reply.status, answer.dump());
  };
  const std::string space(100 << 10, ' ');
  std::vector<std::future<fixtures::HttpReply>> replies;
  for (const auto& [path, body] : requests)
    replies.push_back(
        std::async(std::launch::async, [this, path = path, text = body.dump() + space] {
          return ask(port(), "POST", path, text);
        }));
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& [path, body] = requests[i];
    EXPECT_EQ(without_ids(replies[i].get()), without_ids(ask(port(), "POST", path, body.dump())))
        << path;
  }
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", space + "{").status, 400);
}

TEST_F(ServerTest, SeveralAnswersHaveTheSeedsOneAfterTheOther) {
  const json answer = complete({{"prompt", {"Once upon a time", "Lily and Tom"}},
                                {"max_tokens", 24},
                                {"temperature", 1},
                                {"seed", 7},
                                {"n", 2}});
  ASSERT_EQ(answer["choices"].size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"],
              tiny_->alone(i < 2 ? "Once upon a time" : "Lily and Tom", 24, 1, 7 + i % 2));
  }
}

TEST_F(ServerTest, AStreamSaysTheSameInPieces) {
  const json body{{"prompt", "One day, a boy"},
                  {"max_tokens", 40},
                  {"stream", true},
                  {"return_token_ids", true},
                  {"stream_options", {{"include_usage", true}}}};
  const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
  ASSERT_EQ(reply.status, 200);
  EXPECT_NE(reply.header.find("text/event-stream"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  const auto events = events_of(reply.body);
  ASSERT_GT(events.size(), 3U);
  std::string text;
  size_t tokens = 0;
  for (const json& event : events)
    for (const json& choice : event["choices"]) {
      text += choice["text"].get<std::string>();
      tokens += choice.value("token_ids", json::array()).size();
    }
  const json ids = ask(port(), "POST", "/tokenize", R"({"prompt": "One day, a boy"})").json();
  EXPECT_EQ(events[0]["choices"][0]["prompt_token_ids"], ids["tokens"]);
  EXPECT_FALSE(events[1]["choices"][0].contains("prompt_token_ids")) << "once";
  EXPECT_EQ(text, tiny_->alone("One day, a boy", 40, 0, 1));
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], tokens);
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "length");
  const json& acceptance = events.back()["metrics"]["speculative_decoding"];
  size_t steps = 0, accepted = 0;
  for (size_t n = 0; n < acceptance["acceptance_histogram"].size(); ++n) {
    steps += acceptance["acceptance_histogram"][n].get<size_t>();
    accepted += n * acceptance["acceptance_histogram"][n].get<size_t>();
  }
  EXPECT_EQ(steps, acceptance["num_spec_steps"]);
  EXPECT_EQ(accepted, acceptance["num_accepted_draft_tokens"]);
  EXPECT_EQ(acceptance["acceptance_histogram"].size(),
            acceptance["num_spec_tokens"].get<size_t>() + 1);
  EXPECT_GE(steps + accepted, tokens);  // the last run may be cut off
}

TEST_F(ServerTest, IdsOfPromptsComeWithThoseOfAnswers) {
  const auto ids = [&](const json& more) {
    json body{{"prompt", "Lily and Tom"}};
    body.update(more);
    return ask(port(), "POST", "/tokenize", body.dump()).json()["tokens"];
  };
  json body{{"prompt", {"Lily and Tom", "Once"}}, {"max_tokens", 2}, {"return_token_ids", true}};
  const json two = complete(body);
  EXPECT_EQ(two["choices"][0]["prompt_token_ids"], ids(json::object()));
  EXPECT_EQ(two["choices"][1]["prompt_token_ids"], ids({{"prompt", "Once"}}));
  EXPECT_EQ(two["choices"][0]["token_ids"].size(), 2U);
  body["add_special_tokens"] = false;
  const json without_bos = complete(body)["choices"][0]["prompt_token_ids"];
  EXPECT_EQ(without_bos, ids({{"add_special_tokens", false}}));
  EXPECT_EQ(without_bos.size() + 1, ids(json::object()).size());

  json chat{{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"max_tokens", 2},
            {"return_token_ids", true}};
  const json whole = ask(port(), "POST", "/v1/chat/completions", chat.dump()).json();
  EXPECT_EQ(whole["prompt_token_ids"].size(), whole["usage"]["prompt_tokens"]);
  chat["stream"] = true;
  const auto events = events_of(ask(port(), "POST", "/v1/chat/completions", chat.dump()).body);
  EXPECT_EQ(events[0]["prompt_token_ids"], whole["prompt_token_ids"]);
  EXPECT_FALSE(events[1].contains("prompt_token_ids"));
}

TEST_F(ServerTest, AChatIsTheModelsTemplateAroundItsMessages) {
  const json messages = {{{"role", "user"}, {"content", "Once upon a time"}}};
  const json parts = {
      {{"role", "user"},
       {"content",
        {{{"type", "text"}, {"text", "Once "}}, {{"type", "text"}, {"text", "upon a time"}}}}}};
  for (const json& each : {messages, parts}) {
    const json body{
        {"messages", each}, {"max_completion_tokens", 30}, {"logprobs", true}, {"top_logprobs", 2}};
    const auto reply = ask(port(), "POST", "/v1/chat/completions", body.dump());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json choice = reply.json()["choices"][0];
    EXPECT_EQ(choice["message"]["content"], tiny_->alone("Once upon a time", 30, 0, 1));
    ASSERT_EQ(choice["logprobs"]["content"].size(), 30U);
    for (const json& token : choice["logprobs"]["content"]) {
      ASSERT_EQ(token["top_logprobs"].size(), 2U);
      EXPECT_EQ(token["token"], token["top_logprobs"][0]["token"]) << "greedy";
      EXPECT_LT(token["logprob"], 0);
      EXPECT_LE(token["top_logprobs"][1]["logprob"], token["logprob"]);
    }
  }
}

TEST_F(ServerTest, TheTreeOfEachStepSaysWhatStood) {
  json body{{"prompt", "Lily and Tom. Lily and Tom. Lily and"},
            {"max_tokens", 40},
            {"ignore_eos", true},
            {"medusa", {{"steps", true}}}};
  const json answer = complete(body);
  const json choice = answer["choices"][0];
  const json steps = choice["medusa"]["steps"];
  ASSERT_EQ(steps.size(), answer["metrics"]["speculative_decoding"]["num_spec_steps"]);
  std::string text;
  int accepted = 0;
  const json& acceptance = answer["metrics"]["speculative_decoding"];
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(acceptance["per_step_accepted"][i], steps[i]["accepted"].size());
    EXPECT_EQ(acceptance["per_step_drafted"][i], steps[i]["tokens"].size() - 1);
  }
  for (const json& step : steps) {
    ASSERT_EQ(step["tokens"].size(), step["parents"].size());
    ASSERT_EQ(step["tokens"].size(), step["drafters"].size());
    EXPECT_EQ(step["parents"][0], -1);
    EXPECT_EQ(step["drafters"][0], "none");
    int parent = 0;
    for (const json& node : step["accepted"]) {
      EXPECT_EQ(step["parents"][node.get<size_t>()], parent);
      EXPECT_EQ(step["drafters"][node.get<size_t>()], "prompt_lookup");
      text += step["tokens"][node.get<size_t>()].get<std::string>();
      parent = node;
      ++accepted;
    }
    text += step["next"].get<std::string>();
  }
  EXPECT_GT(accepted, 0) << "the prompt repeats itself";
  EXPECT_EQ(text.substr(0, choice["text"].get<std::string>().size()), choice["text"]);

  body["stream"] = true;
  const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
  json streamed = json::array();
  for (const json& event : events_of(reply.body))
    for (const json& each : event["choices"])
      if (each.contains("medusa")) streamed.push_back(each["medusa"]["step"]);
  EXPECT_EQ(streamed, steps);
}

TEST_F(ServerTest, AStopStringEndsTheTextBeforeIt) {
  const std::string whole = tiny_->alone("Once upon a time", 60, 0, 1);
  const std::string stop = whole.substr(whole.size() / 2, 6);
  const json answer =
      complete({{"prompt", "Once upon a time"}, {"max_tokens", 60}, {"stop", stop}});
  EXPECT_EQ(answer["choices"][0]["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
}

TEST_F(ServerTest, AModelWithoutAChatTemplateContinuesTexts) {
  ServedModel model = tiny_->model();
  model.has_chat = false;
  const fixtures::RunningServer server(model);
  const auto post = [&](const char* path, json body) {
    body["max_tokens"] = 10;
    return ask(server.port(), "POST", path, body.dump());
  };
  const json text = post("/v1/completions", {{"prompt", "Lily and Tom"}}).json();
  EXPECT_EQ(text["choices"][0]["text"], tiny_->alone("Lily and Tom", 10, 0, 1));
  EXPECT_EQ(post("/tokenize", {{"prompt", "Lily"}}).status, 200);
  const json messages{{"messages", {{{"role", "user"}, {"content", "a"}}}}};
  for (const auto& [path, body] :
       std::initializer_list<std::pair<const char*, json>>{{"/v1/chat/completions", messages},
                                                           {"/v1/messages", messages},
                                                           {"/v1/messages/count_tokens", messages},
                                                           {"/v1/responses", {{"input", "a"}}}}) {
    const auto reply = post(path, body);
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_NE(reply.body.find("no chat template, expected one"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models").json()["data"][0]["medusa"]["chat"], false);
}

TEST_F(ServerTest, AClientThatLeavesGivesItsSequenceBack) {
  constexpr int kClients = 3 * kSequences;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    const json body{{"prompt", "Once upon a time"},
                    {"max_tokens", 240},
                    {"ignore_eos", true},
                    {"stream", i % 2 == 0}};
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send(http_request("POST", "/v1/completions", body.dump()));
  }
  clients[0]->read_some(200);
  for (const auto& client : clients) client->close();
  EXPECT_TRUE(reaches("medusa:request_success_total{finished_reason=\"cancelled\"}", kClients));
  EXPECT_TRUE(reaches("medusa:num_requests_waiting", 0));
  EXPECT_TRUE(reaches("medusa:num_requests_running", 0));
  EXPECT_EQ(complete({{"prompt", "Lily and Tom"}, {"max_tokens", 9}})["choices"][0]["text"],
            tiny_->alone("Lily and Tom", 9, 0, 1));
}

TEST_F(ServerTest, AClientThatSentItsNextRequestAndLeavesGivesItsSequenceBack) {
  const json body{{"prompt", "Once upon a time"}, {"max_tokens", 240}, {"ignore_eos", true}};
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6 * kSequences; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send(http_request("POST", "/v1/completions", body.dump()));
  }
  ASSERT_TRUE(reaches("medusa:num_requests_running", kSequences));
  for (size_t i = 0; i < clients.size(); ++i)
    clients[i]->send(i % 2 == 0 ? http_request("GET", "/health", "") : "\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // more comes, and then the end
  for (const auto& client : clients) client->close();
  EXPECT_TRUE(reaches("medusa:num_requests_waiting", 0));
  EXPECT_TRUE(reaches("medusa:num_requests_running", 0));
  // A few may have been answered before.
  EXPECT_GE(metric("medusa:request_success_total{finished_reason=\"cancelled\"}"), kSequences);
}

TEST_F(ServerTest, ALimitOfTheTreeIsKept) {
  for (const int size : {1, 2, 5}) {
    const json answer = complete({{"prompt", "Lily and Tom. Lily and Tom. Lily and"},
                                  {"max_tokens", 40},
                                  {"medusa", {{"tree_size", size}, {"drafter", "medusa"}}}});
    const json stats = answer["metrics"]["speculative_decoding"];
    EXPECT_LE(stats["num_draft_tokens"].get<int>(),
              (size - 1) * stats["num_spec_steps"].get<int>());
    EXPECT_EQ(stats["num_draft_tokens"] == 0, size == 1);
  }
}

TEST_F(ServerTest, AThresholdThatIsNotSaidIsTheServersOwn) {
  ServedModel strict = tiny_->model();
  strict.settings.typical.epsilon = 0.5;
  strict.settings.typical.delta = 0.01;
  const auto read = [&](const char* name, double value) {
    const json body{{"messages", {{{"role", "user"}, {"content", "a"}}}},
                    {"medusa", {{"rule", "typical"}, {name, value}}}};
    return read_chat_request(body, body.dump(), strict).choices.at(0).typical.value();
  };
  EXPECT_EQ(read("epsilon", 0.4).epsilon, 0.4);
  EXPECT_EQ(read("epsilon", 0.4).delta, 0.01);
  EXPECT_EQ(read("delta", 0.4).epsilon, 0.5);
}

TEST_F(ServerTest, TheSlotsSayWhatRuns) {
  EXPECT_EQ(ask(port(), "GET", "/slots").json(), json::array());
  const json body{{"prompt", {1, 300, 301}},
                  {"max_tokens", 250},
                  {"ignore_eos", true},
                  {"stream", true},
                  {"medusa", {{"drafter", "medusa"}}}};
  json slots = json::array();
  for (int i = 0; i < 50 && slots.empty(); ++i) {  // a text may end before anybody looks
    Client client(port());
    client.send(http_request("POST", "/v1/completions", body.dump()));
    client.read_some(300);
    slots = ask(port(), "GET", "/slots").json();
  }
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0]["state"], "running");
  EXPECT_EQ(slots[0]["drafter"], "medusa");
  EXPECT_EQ(slots[0]["prompt_tokens"], 3);
  EXPECT_GT(slots[0]["tokens"], 0);
  EXPECT_GT(slots[0]["tree_nodes"], 1);
  EXPECT_GE(slots[0]["num_draft_tokens"], slots[0]["num_accepted_draft_tokens"]);
}

TEST_F(ServerTest, TheTokenizerTellsItsSpecialTokens) {
  const json info = ask(port(), "GET", "/tokenizer_info").json();
  const Tokenizer& tokenizer = *tiny_->loaded().tokenizer;
  EXPECT_EQ(info["eos_token"], tokenizer.bytes(*tokenizer.eos()));
  EXPECT_EQ(info["vocab_size"], 512);
}

TEST_F(ServerTest, StoppingFinishesWhatRuns) {
  Client client(port());
  const json body{
      {"prompt", "Once upon a time"}, {"max_tokens", 200}, {"ignore_eos", true}, {"stream", true}};
  client.send(http_request("POST", "/v1/completions", body.dump()));
  client.read_some(200);
  server_.stop();
  EXPECT_TRUE(client.read_to_end().find("data: [DONE]") != std::string::npos);
  EXPECT_THROW(Client late(port()), boost::system::system_error);
}

}  // namespace
}  // namespace medusa
