#include "tests/server/served.h"

#include <sstream>

#include "tests/backbone/tiny_model.h"
#include "tests/server/chat_template.h"
#include "tests/server/fitted_heads.h"
#include "tools/run/open_model.h"

namespace medusa::fixtures {
namespace {

namespace asio = boost::asio;

Model load_tiny(bool shares) {
  BackboneSection config;
  config.model = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  config.device = DeviceKind::Cpu;
  config.threads = 1;
  config.context = 256;
  config.chat_template = "plain";
  Model loaded = open_model(config);
  if (shares) {
    ModelConfig model = tiny_config();
    model.vocab_size = loaded.llama->config().vocab_size;
    model.context = loaded.context = 512;  // what it writes takes more tokens when read again
    loaded.llama = std::make_unique<Llama>(tiny_weights(32, model, at::kBFloat16));
  }
  return loaded;
}

/// Chunks put together; what is no chunk is left as it is.
std::string without_chunks(const std::string& bytes) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t line = bytes.find("\r\n", at);
    if (line == std::string::npos) return out;
    const size_t size = std::stoul(bytes.substr(at, line - at), nullptr, 16);
    if (size == 0) return out;
    out += bytes.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
}

ServerOptions on_any_port(ServerOptions options) {
  options.port = 0;
  return options;
}

}  // namespace

TinyServed::TinyServed(int32_t sequences, std::optional<int64_t> cache_tokens, bool shares)
    : loaded_(load_tiny(shares)),
      chat_(ChatTemplate::of_source(kChatTemplate, *loaded_.tokenizer)),
      heads_(fitted_heads(loaded_, 3), loaded_.llama->weights()) {
  settings_.drafter = DrafterKind::PromptLookup;
  settings_.merge.drafters.push_back(DrafterKind::Shared);
  std::optional<int64_t> bytes;
  if (cache_tokens) bytes = loaded_.llama->cache_bytes(*cache_tokens);
  target_ = std::make_unique<BackboneTarget>(*loaded_.llama, sequences, loaded_.context, bytes);
  const StepCost cost{{1, 1.05, 1.1, 1.15, 1.3, 1.35, 1.4, 1.45}};  // a tile is four rows
  decoder_ = std::make_unique<HostDecoder>(*target_, make_rule(settings_),
                                           make_drafter_factory(settings_, {}),
                                           HostDecoderOptions{.cost = cost, .prompt_share = 0.3});
}

ServedModel TinyServed::model() {
  std::map<DrafterKind, DrafterFactory> drafters, unshared;
  for (const DrafterSpec* spec : all_drafters()) {
    InferConfig each = settings_;
    each.drafter = spec->kind;
    const DraftNeeds needs = needs_of(each);
    if (needs.draft || needs.skipping || needs.eagle3) continue;
    drafters.emplace(spec->kind, make_drafter_factory(each, heads_.parts()));
    std::erase(each.merge.drafters, DrafterKind::Shared);
    if (!needs_of(each).shared)
      unshared.emplace(spec->kind, make_drafter_factory(each, heads_.parts()));
  }
  return {.name = "tiny",
          .tokenizer = *loaded_.tokenizer,
          .chat = chat_,
          .eos = loaded_.eos,
          .context = loaded_.context,
          .num_sequences = target_->num_free_slots(),
          .cache_tokens = target_->total_rows(),
          .decoder = *decoder_,
          .settings = settings_,
          .drafters = std::move(drafters),
          .unshared_drafters = std::move(unshared),
          .shared = &heads_.shared()};
}

std::string TinyServed::alone(const std::string& prompt, int32_t tokens, double temperature,
                              uint64_t seed) {
  InferConfig plain;
  plain.drafter = DrafterKind::None;
  plain.sampling.temperature = temperature;
  BackboneTarget target(*loaded_.llama, 1, loaded_.context);
  std::string text;
  DecodeRequest request;
  request.prompt = loaded_.tokenizer->encode(prompt, true);
  if (loaded_.tokenizer->adds_bos())
    request.prompt.insert(request.prompt.begin(), *loaded_.tokenizer->bos());
  request.limits = {.max_new_tokens = tokens, .eos = loaded_.eos};
  request.random = Random(seed);
  std::vector<TokenId> ids;
  request.emit = [&](const EmittedToken& token) {
    if (!loaded_.tokenizer->is_special(token.id)) ids.push_back(token.id);
    return true;
  };
  decode_one(target, *make_rule(plain), make_drafter_factory(plain, {}), std::move(request));
  return loaded_.tokenizer->decode(ids);
}

RunningServer::RunningServer(ServedModel model, ServerOptions options)
    : server_(model.name, on_any_port(std::move(options))) {
  server_.serve(std::move(model));
}

RunningServer::~RunningServer() {
  server_.stop();
  server_.run(false);
}

Client::Client(uint16_t port) : socket_(io_) {
  socket_.connect({asio::ip::make_address("127.0.0.1"), port});
}

void Client::send(const std::string& bytes) { asio::write(socket_, asio::buffer(bytes)); }

std::string Client::read_to_end() {
  std::string out;
  boost::system::error_code error;
  asio::read(socket_, asio::dynamic_buffer(out), error);
  return out;
}

std::string Client::read_some(size_t bytes) {
  std::string out;
  asio::read(socket_, asio::dynamic_buffer(out), asio::transfer_at_least(bytes));
  return out;
}

std::string http_request(const std::string& method, const std::string& path,
                         const std::string& body, const std::string& headers) {
  return method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

HttpReply parse_reply(const std::string& bytes) {
  HttpReply out;
  const size_t end = bytes.find("\r\n\r\n");
  if (end != std::string::npos && bytes.starts_with("HTTP/1.1 1"))  // an interim answer
    return parse_reply(bytes.substr(end + 4));
  if (end == std::string::npos) return out;
  out.header = bytes.substr(0, end);
  out.status = std::stoi(out.header.substr(out.header.find(' ') + 1, 3));
  out.body = bytes.substr(end + 4);
  if (out.header.find("chunked") != std::string::npos) out.body = without_chunks(out.body);
  return out;
}

HttpReply ask(uint16_t port, const std::string& method, const std::string& path,
              const std::string& body, const std::string& headers) {
  Client client(port);
  client.send(http_request(method, path, body, "Connection: close\r\n" + headers));
  return parse_reply(client.read_to_end());
}

std::vector<nlohmann::json> events_of(const std::string& body) {
  std::vector<nlohmann::json> out;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("data: {")) out.push_back(nlohmann::json::parse(line.substr(6)));
  return out;
}

}  // namespace medusa::fixtures
