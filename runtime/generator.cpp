#include "runtime/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

#include "base/error.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "runtime/drafting.h"

namespace medusa {
namespace {

/// What all texts may have, or one of them.
void check_settings(const InferConfig& infer, bool has_own_drafter) {
  check_config(infer, "generate");
  if (needs_of(infer).shared)
    throw UserError(fmt::format(
        "generate.drafter is '{}' with what others were answered (drafter 'shared'), found a "
        "generator, which keeps no answers, expected another drafter; choose one, or leave "
        "'shared' out of generate.merge.drafters",
        enum_name(infer.drafter)));
  if (has_own_drafter && infer.drafter != DrafterKind::None)
    throw UserError(fmt::format(
        "generate.drafter is '{}' and there is an own drafter, expected one of the two; set it to "
        "'none', or leave the own one out",
        enum_name(infer.drafter)));
}

void check_stop(const std::vector<std::string>& stop) {
  if (std::find(stop.begin(), stop.end(), "") != stop.end())
    throw UserError(
        "generate.stop holds an empty text, expected texts of a character or more; remove it");
}

void check_options(const GeneratorOptions& options) {
  check_settings(options.infer, options.own_drafter != nullptr);
  check_stop(options.stop);
  if (options.sequences < 1)
    throw UserError(fmt::format(
        "generate.sequences is {}, expected 1 or more; set it to the number of texts that are to "
        "be decoded at the same time",
        options.sequences));
  if (options.logprobs < 0)
    throw UserError(fmt::format(
        "generate.logprobs is {}, expected 0 or more; set it to the number of tokens to keep",
        options.logprobs));
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

/// Settings, and what was loaded for them.
struct Loaded {
  InferConfig infer;
  LoadedDrafting drafting;

  /// Says whether other settings' drafter can be made from it.
  bool serves(const InferConfig& other) const {
    const DraftNeeds needs = needs_of(other);
    return has_parts(needs, drafting.parts()) && (!needs.cost || drafting.cost) &&
           (!needs.heads || drafting.runner->top_k() >= needs.drafts) &&
           (!needs.store || infer.retrieval.store == other.retrieval.store) &&
           (!needs.draft || infer.draft_model.model == other.draft_model.model) &&
           (!needs.skipping || infer.layer_skip.skip == other.layer_skip.skip) &&
           (!needs.eagle3 || infer.eagle3.draft == other.eagle3.draft);
  }
};

/// Runs f for what one request asks for; errors say which one.
template <typename Function>
void of_request(size_t index, const Function& f) {
  try {
    f();
  } catch (const UserError& error) {
    throw UserError(fmt::format("requests[{}]: {}", index, error.what()));
  }
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
        own_{options_.infer, load_drafting(options_.files, options_.infer, model_, target_)},
        decoder_(decoder_of(options_, own_.drafting.parts(), target_)),
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
    bool differ = false;
    for (size_t i = 0; i < requests.size(); ++i) {
      check(requests[i], i);
      differ |= requests[i].infer.has_value();
    }
    for (size_t i = 0; i < requests.size(); ++i)
      if (requests[i].infer) of_request(i, [&] { drafting_for(*requests[i].infer); });
    const AnswerOptions options{
        .max_new_tokens = options_.infer.max_new_tokens,
        .stop = options_.stop,
        .logprobs = options_.logprobs,
        .show = show,
        .drafter_of = [this](const InferConfig& infer) { return drafter_of(infer); }};
    if (!differ) return answer_together(model_, *decoder_, requests, options);
    HostDecoder mixed(target_, make_rule(options_.infer), drafter_of(options_.infer),
                      {.cost = cost()});
    return answer_together(model_, mixed, requests, options);
  }

  const Decoder& decoder() const { return *decoder_; }
  const std::string& heads() const { return own_.drafting.heads; }
  bool lossless() const { return lossless_; }

 private:
  /// What was loaded for these settings, or is now.
  const LoadedDrafting& drafting_for(const InferConfig& infer) {
    if (options_.own_drafter || own_.serves(infer)) return own_.drafting;
    for (const Loaded& each : others_)
      if (each.serves(infer)) return each.drafting;
    others_.push_back({infer, load_drafting(options_.files, infer, model_, target_, known_cost())});
    return others_.back().drafting;
  }

  DrafterFactory drafter_of(const InferConfig& infer) {
    if (options_.own_drafter) return options_.own_drafter;
    return make_drafter_factory(infer, drafting_for(infer).parts());
  }

  /// What rows cost, where a drafter has needed it; null: none has.
  std::shared_ptr<const StepCost> known_cost() const {
    if (own_.drafting.cost) return own_.drafting.cost;
    for (const Loaded& each : others_)
      if (each.drafting.cost) return each.drafting.cost;
    return nullptr;
  }
  StepCost cost() const {
    const auto known = known_cost();
    return known ? *known : StepCost{};
  }

  /// What one text cannot have, and what submit() would refuse when some are decoded already.
  void check(const AnswerRequest& asked, size_t index) const {
    if (asked.infer)
      of_request(index, [&] { check_settings(*asked.infer, options_.own_drafter != nullptr); });
    if (asked.stop) of_request(index, [&] { check_stop(*asked.stop); });
    DecodeRequest request;
    request.prompt = asked.prompt;
    request.limits.max_new_tokens = asked.infer.value_or(options_.infer).max_new_tokens;
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
  Loaded own_;                // for the settings of the options
  std::list<Loaded> others_;  // for what texts asked for; parts are kept by reference
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
