#include "runtime/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "infer/host_decoder.h"
#include "infer/make_decoder.h"
#include "runtime/drafting.h"

namespace medusa {
namespace {

void check_options(const GeneratorOptions& options) {
  check_config(options.infer, "generate");
  if (options.sequences < 1)
    throw UserError(fmt::format(
        "generate.sequences is {}, expected 1 or more; set it to the number of texts that are to "
        "be decoded at the same time",
        options.sequences));
  if (options.logprobs < 0)
    throw UserError(fmt::format(
        "generate.logprobs is {}, expected 0 or more; set it to the number of tokens to keep",
        options.logprobs));
  if (std::find(options.stop.begin(), options.stop.end(), "") != options.stop.end())
    throw UserError(
        "generate.stop holds an empty text, expected texts of a character or more; remove it");
  if (options.own_drafter && options.infer.drafter != DrafterKind::None)
    throw UserError(fmt::format(
        "generate.drafter is '{}' and there is an own drafter, expected one of the two; set it to "
        "'none', or leave the own one out",
        enum_name(options.infer.drafter)));
}

GeneratorOptions checked(GeneratorOptions options) {
  check_options(options);
  if (options.logprobs > 0) options.infer.graphs = false;  // the logits are wanted on the host
  return options;
}

std::unique_ptr<Decoder> decoder_of(const GeneratorOptions& options, const DraftParts& parts,
                                    BackboneTarget& target) {
  if (!options.own_drafter) return make_decoder(options.infer, parts, target);
  return std::make_unique<HostDecoder>(target, make_rule(options.infer), options.own_drafter);
}

Generator::ShowEach as_only(const Generator::Show& show) {
  if (!show) return {};
  return [&show](size_t, std::string_view piece) { return show(piece); };
}

}  // namespace

InferConfig plain_decoding() {
  InferConfig infer;
  infer.drafter = DrafterKind::None;
  return infer;
}

class Generator::Impl {
 public:
  Impl(const Model& model, GeneratorOptions options)
      : model_(model),
        options_(checked(std::move(options))),
        target_(model_.open_target(options_.sequences, model_.context)),
        drafting_(load_drafting(options_.files, options_.infer, model_, target_)),
        decoder_(decoder_of(options_, drafting_.parts(), target_)),
        lossless_(make_rule(options_.infer)->lossless()) {}

  std::vector<AnswerRequest> requests(const std::vector<std::string>& prompts) const {
    std::vector<AnswerRequest> out;
    for (const std::string& prompt : prompts)
      out.push_back({model_.encode({{"user", prompt}}), options_.seed});
    return out;
  }

  std::vector<AnswerRequest> requests(const std::vector<ChatMessage>& conversation) const {
    return {{model_.encode(conversation), options_.seed}};
  }

  std::vector<Answer> answer(const std::vector<AnswerRequest>& requests, const ShowEach& show) {
    const auto turn = model_.turns->take("Generator");
    for (const AnswerRequest& each : requests) check(each);
    return answer_together(model_, *decoder_, requests,
                           {.max_new_tokens = options_.infer.max_new_tokens,
                            .stop = options_.stop,
                            .logprobs = options_.logprobs,
                            .show = show});
  }

  const Decoder& decoder() const { return *decoder_; }
  const std::string& heads() const { return drafting_.heads; }
  bool lossless() const { return lossless_; }

 private:
  /// What submit() would refuse when some texts are decoded already.
  void check(const AnswerRequest& asked) const {
    DecodeRequest request;
    request.prompt = asked.prompt;
    request.limits.max_new_tokens = options_.infer.max_new_tokens;
    check_request(request, target_.max_rows(), target_.total_rows());
    const auto vocab_size = static_cast<TokenId>(model_.llama->config().vocab_size);
    for (const TokenId token : asked.prompt)
      if (token < 0 || token >= vocab_size)
        throw UserError(
            fmt::format("the prompt holds token {}, expected ids from 0 to {}; encode it with the "
                        "model's own tokenizer",
                        token, vocab_size - 1));
  }

  Model model_;
  GeneratorOptions options_;
  BackboneTarget target_;
  LoadedDrafting drafting_;
  std::unique_ptr<Decoder> decoder_;
  bool lossless_;
};

Generator::Generator(const Model& model, GeneratorOptions options) {
  expect_loaded(model, "Generator");
  const auto turn = model.turns->take("Generator");
  impl_ = std::make_unique<Impl>(model, std::move(options));
}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Answer Generator::generate(std::string_view prompt, const Show& show) {
  return chat({{"user", std::string(prompt)}}, show);
}

std::vector<Answer> Generator::generate(const std::vector<std::string>& prompts,
                                        const ShowEach& show) {
  return impl_->answer(impl_->requests(prompts), show);
}

Answer Generator::chat(const std::vector<ChatMessage>& conversation, const Show& show) {
  return std::move(impl_->answer(impl_->requests(conversation), as_only(show)).front());
}

std::vector<Answer> Generator::answer(const std::vector<AnswerRequest>& requests,
                                      const ShowEach& show) {
  return impl_->answer(requests, show);
}

bool Generator::lossless() const { return impl_->lossless(); }

const std::string& Generator::heads() const { return impl_->heads(); }

std::string Generator::report() const { return impl_->decoder().report(); }

}  // namespace medusa
