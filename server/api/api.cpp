#include "server/api/api.h"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/elapsed.h"
#include "base/error.h"
#include "base/json_text.h"
#include "server/api/api_error.h"
#include "server/api/completion_answer.h"
#include "server/api/completion_request.h"
#include "server/api/messages_answer.h"
#include "server/api/messages_request.h"
#include "server/api/responses_answer.h"
#include "server/api/responses_request.h"
#include "server/api/run_answer.h"
#include "server/http/request_head.h"
#include "server/page/page.h"
#include "server/request/request_fields.h"
#include "server/request/request_reader.h"

namespace medusa {
namespace {

namespace asio = boost::asio;

constexpr const char* kJsonType = "application/json";
constexpr const char* kOneModel = "/v1/models/";  // before its name
constexpr size_t kLongBody = 4 << 10;             // reading longer ones may take milliseconds

nlohmann::json model_json(const ServedModel& model) {
  nlohmann::json drafters = nlohmann::json::array();
  for (const auto& [kind, factory] : model.drafters) drafters.push_back(enum_name(kind));
  return {{"id", model.name},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "medusa.cpp"},
          {"max_model_len", model.context},
          {"medusa",
           {{"drafter", enum_name(model.settings.drafter)},
            {"drafters", std::move(drafters)},
            {"sequences", model.num_sequences},
            {"chat", model.has_chat},
            {"cache_tokens", model.cache_tokens}}}};
}

/// An answer's text, with what was ignored of its request.
std::string with_warnings(nlohmann::json answer, const std::vector<std::string>& warnings) {
  if (!warnings.empty()) answer["medusa"] = {{"warnings", warnings}};
  return json_text(answer);
}

}  // namespace

struct Api::Asked {
  CompletionRequest wanted;
  std::unique_ptr<AnswerWriter> writer;  // refers to what is wanted
};

Api::Api(ServerMetrics& metrics, ApiOptions options)
    : metrics_(metrics), options_(std::move(options)), log_(options_.log) {
  const auto add = [this](const char* method, const char* path, auto function) {
    endpoints_[path] = {
        method, [this, function](Exchange& exchange) { return (this->*function)(exchange); }};
  };
  add("GET", "/", &Api::page);
  add("GET", "/health", &Api::health);
  add("GET", "/v1/models", &Api::models);
  add("GET", kOneModel, &Api::one_model);
  add("GET", "/metrics", &Api::metrics_text);
  add("GET", "/slots", &Api::slots);
  add("GET", "/tokenizer_info", &Api::tokenizer_info);
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"})
    add("POST", path, &Api::complete);
  const auto add_reader = [this](const char* path, JsonOfBody json_of) {
    endpoints_[path] = {
        "POST", [this, json_of](Exchange& exchange) { return answer_with(exchange, json_of); }};
  };
  add_reader("/tokenize", &Api::tokens_json);
  add_reader("/detokenize", &Api::decoded_json);
  add_reader("/v1/messages/count_tokens", &Api::token_count_json);
}

void Api::serve(Scheduler& scheduler) {
  own_loaded_ = std::make_unique<Loaded>(scheduler);
  loaded_.store(own_loaded_.get());
}

std::string Api::new_id() {
  return fmt::format("{:08x}{:08x}{:08x}", random_(), random_(), random_());
}

asio::awaitable<void> Api::json(Exchange& exchange, int status, std::string body) {
  return exchange.answer.reply(status, kJsonType, std::move(body));
}

asio::awaitable<void> Api::handle(const HttpRequest& request, HttpAnswer& answer) {
  Exchange exchange{request, answer};
  const auto came = std::chrono::steady_clock::now();
  const auto note_end = [&] {
    if (answer.status() != 0) metrics_.count_answer(answer.status());
    LoggedRequest& log = exchange.log;
    log.method = request.method;
    log.path = request.path;
    log.traceparent = valid_traceparent(request.header("traceparent"));
    log.status = answer.status();
    log.seconds = seconds_since(came);
    log_.write(log);
  };
  try {
    co_await respond(exchange);
  } catch (...) {  // of the connection
    exchange.log.client_left = true;
    note_end();
    throw;
  }
  note_end();
}

asio::awaitable<void> Api::respond(Exchange& exchange) {
  const auto& [request, answer, log] = exchange;
  std::optional<ApiError> wrong;
  std::vector<HttpAnswer::Header> headers;
  answer.add_headers(options_.access.headers());
  if (!request.refusal && options_.access.is_preflight(request)) {
    co_await answer.reply(204, kJsonType, "", options_.access.preflight_headers());
    co_return;
  }
  try {
    if (request.refusal) throw ApiError(*request.refusal);
    options_.access.expect_own_page(request);
    options_.access.expect_key(request);
    const auto found =
        endpoints_.find(request.path.starts_with(kOneModel) ? kOneModel : request.path);
    if (found == endpoints_.end())
      throw ApiError(404, fmt::format("'{}' is no path of this server, expected one like "
                                      "/v1/chat/completions; correct the client's base URL",
                                      request.path.substr(0, 100)));
    const auto& [method, endpoint] = found->second;
    if (request.method != method && !(method == "GET" && request.method == "HEAD")) {
      headers.emplace_back("Allow", method);
      throw ApiError(405, fmt::format("{} is asked for with {}, expected {}; use that",
                                      request.path, request.method.substr(0, 20), method));
    }
    if (loaded_.load() == nullptr) {
      if (request.path == "/") headers.emplace_back("Refresh", "1");  // browsers try again
      throw ApiError(503, "the model is still loading; ask again in a moment", "", "loading");
    }
    co_await endpoint(exchange);
    co_return;
  } catch (const ApiError& error) {
    wrong = error;
  } catch (const boost::system::system_error&) {  // of the connection: nobody to answer
    throw;
  } catch (const std::exception& error) {
    wrong = server_fault(error);
  }
  if (answer.status() != 0)  // too late for another one: the connection ends
    throw boost::system::system_error(asio::error::connection_aborted);
  note_refusal(*wrong, exchange.log);
  if (wrong->status() == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (wrong->status() == 415) headers.emplace_back("Accept-Encoding", "identity");
  if (wrong->status() == 429 || wrong->status() == 503) headers.emplace_back("Retry-After", "1");
  const bool is_anthropics = request.path.starts_with("/v1/messages");
  std::string body = json_text(is_anthropics ? messages_error(*wrong) : wrong->json());
  co_await answer.reply(wrong->status(), kJsonType, std::move(body), std::move(headers));
}

asio::awaitable<void> Api::health(Exchange& exchange) {
  const SchedulerState state = scheduler().state();
  const bool is_stuck = state.seconds_since_step > kStuckSeconds;
  const char* status = is_stuck ? "stuck" : draining_ ? "stopping" : "ok";
  return json(exchange, is_stuck || draining_ ? 503 : 200,
              json_text(nlohmann::json{{"status", status},
                                       {"running", state.running},
                                       {"waiting", state.waiting},
                                       {"seconds_since_step", state.seconds_since_step}}));
}

asio::awaitable<void> Api::models(Exchange& exchange) {
  return json(
      exchange, 200,
      json_text(nlohmann::json{
          {"object", "list"}, {"data", nlohmann::json::array({model_json(scheduler().model())})}}));
}

asio::awaitable<void> Api::one_model(Exchange& exchange) {
  const ServedModel& model = scheduler().model();
  const std::string name =
      percent_decoded(exchange.request.path.substr(std::string_view(kOneModel).size()));
  if (name != model.name) throw unknown_model(name, model.name);
  return json(exchange, 200, json_text(model_json(model)));
}

asio::awaitable<void> Api::slots(Exchange& exchange) {
  nlohmann::json out = nlohmann::json::array();
  for (const SlotState& each : scheduler().slots())
    out.push_back({{"id", each.ticket},
                   {"state", each.is_running ? "running" : "waiting"},
                   {"drafter", enum_name(each.drafter)},
                   {"prompt_tokens", each.prompt_tokens},
                   {"tokens", each.tokens},
                   {"steps", each.steps},
                   {"tree_nodes", each.tree_nodes},
                   {"num_draft_tokens", each.proposed},
                   {"num_accepted_draft_tokens", each.accepted}});
  return json(exchange, 200, json_text(out));
}

/// What lm-eval's remote tokenizer asks for.
asio::awaitable<void> Api::tokenizer_info(Exchange& exchange) {
  const Tokenizer& tokenizer = scheduler().model().tokenizer;
  const auto text_of = [&tokenizer](std::optional<TokenId> id) {
    return id ? nlohmann::json(tokenizer.bytes(*id)) : nlohmann::json();
  };
  return json(exchange, 200,
              json_text(nlohmann::json{{"bos_token", text_of(tokenizer.bos())},
                                       {"eos_token", text_of(tokenizer.eos())},
                                       {"pad_token", nullptr},
                                       {"add_bos_token", tokenizer.adds_bos()},
                                       {"vocab_size", tokenizer.vocab_size()},
                                       {"chat_template", tokenizer.chat_template()}}));
}

asio::awaitable<void> Api::page(Exchange& exchange) {
  return exchange.answer.reply(
      200, "text/html; charset=utf-8", std::string(page_html()),
      {{"Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src "
        "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"}});
}

asio::awaitable<void> Api::metrics_text(Exchange& exchange) {
  const SchedulerState state = scheduler().state();
  return exchange.answer.reply(
      200, "text/plain; version=0.0.4; charset=utf-8",
      metrics_.text(state.running, state.waiting, state.cache, state.shared));
}

/// Calls what reads a request, of a long body beside the io thread.
asio::awaitable<void> Api::read_aside(const HttpRequest& request,
                                      const std::function<void()>& read) {
  if (request.body.size() < kLongBody)
    read();
  else
    co_await aside_.run(read);
}

/// Answers with what a body asks for, as JSON.
asio::awaitable<void> Api::answer_with(Exchange& exchange, JsonOfBody json_of) {
  std::string text;
  const std::function<void()> read = [&] { text = (this->*json_of)(exchange.request.body); };
  co_await read_aside(exchange.request, read);
  co_await json(exchange, 200, std::move(text));
}

std::string Api::tokens_json(const std::string& text) const {
  const ServedModel& model = scheduler().model();
  const nlohmann::json body = parse_body(text);
  RequestFields fields(body);
  expect_served_model(fields, model);
  const auto prompt = fields.text("prompt");
  if (!prompt) fields.refuse("prompt", "a text");
  expect_short_text(prompt->size(), "prompt", model);
  auto tokens = model.tokenizer.encode(*prompt, true);
  const bool adds = fields.boolean("add_special_tokens").value_or(true);
  if (adds && model.tokenizer.adds_bos() && model.tokenizer.bos())
    tokens.insert(tokens.begin(), *model.tokenizer.bos());
  const auto count = tokens.size();
  fields.warn_of_unknown();
  return with_warnings(
      {{"tokens", std::move(tokens)}, {"count", count}, {"max_model_len", model.context}},
      fields.warnings());
}

std::string Api::decoded_json(const std::string& text) const {
  const Tokenizer& tokenizer = scheduler().model().tokenizer;
  const nlohmann::json body = parse_body(text);
  RequestFields fields(body);
  expect_served_model(fields, scheduler().model());
  const auto tokens = fields.token_ids("tokens", tokenizer.vocab_size());
  if (!fields.has("tokens")) fields.refuse("tokens", "a list of token ids");
  fields.warn_of_unknown();
  const std::string decoded = tokenizer.decode(tokens);
  expect_short_text(decoded.size(), "tokens", scheduler().model());  // as of a prompt
  return with_warnings({{"prompt", decoded}}, fields.warnings());
}

std::string Api::token_count_json(const std::string& text) const {
  const CompletionRequest asked =
      read_count_tokens_request(parse_body(text), text, scheduler().model());
  return with_warnings({{"input_tokens", asked.prompt_tokens}}, asked.warnings);
}

/// Reads a request for a text, of any API.
void Api::read(const HttpRequest& request, const std::string& id, Asked& out) const {
  const ServedModel& model = scheduler().model();
  const nlohmann::json body = parse_body(request.body);
  if (request.path == "/v1/messages") {
    out.wanted = read_messages_request(body, request.body, model);
    out.writer = std::make_unique<MessagesAnswer>(out.wanted, model, id);
  } else if (request.path == "/v1/responses") {
    out.wanted = read_responses_request(body, request.body, model);
    out.writer = std::make_unique<ResponsesAnswer>(out.wanted, body, model, id);
  } else {
    out.wanted = request.path == "/v1/completions"
                     ? read_completion_request(body, request.body, model)
                     : read_chat_request(body, request.body, model);
    out.writer = std::make_unique<CompletionAnswer>(out.wanted, model, id);
  }
}

/// The requests for a text, of every API.
asio::awaitable<void> Api::complete(Exchange& exchange) {
  AnswerTimes times{options_.ping, options_.deadline, std::chrono::steady_clock::now()};
  if (draining_) throw ApiError(503, "the server is stopping; ask another one", "", "stopping");
  const ServedModel& model = scheduler().model();
  Asked asked;
  const std::string id = new_id();
  const std::function<void()> read_all = [&] { read(exchange.request, id, asked); };
  co_await read_aside(exchange.request, read_all);
  auto& [wanted, writer] = asked;
  if (wanted.grammar) {
    const auto grammar =
        co_await loaded_.load()->grammars.compile(wanted.grammar->grammar, wanted.grammar->field);
    for (GenerationRequest& each : wanted.choices) each.grammar = grammar;
  }
  if (options_.log_prompts)
    for (size_t i = 0; i < wanted.choices.size();
         i += static_cast<size_t>(wanted.choices_per_prompt))
      exchange.log.prompts.push_back(model.tokenizer.decode(wanted.choices[i].prompt));
  co_await run_answer({scheduler(), metrics_, aside_}, wanted, *writer, times, exchange.answer,
                      exchange.log);
}

}  // namespace medusa
