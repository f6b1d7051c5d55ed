#include "tools/chat/chat.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "tools/front/command_page.h"

namespace medusa {
namespace {

/// The value that is typed behind a command.
template <typename T>
T value_of(const std::string& command, const std::string& text) {
  T value{};
  if (detail::parse_scalar(text, value)) return value;
  throw UserError(
      fmt::format("{} is '{}', expected {}; correct it", command, text, detail::kind_of<T>()));
}

DrafterKind drafter_of(const std::string& name) {
  DrafterKind kind{};
  if (detail::parse_scalar(name, kind)) return kind;
  std::vector<std::string> names;
  for (const auto& [each, value] : EnumNames<DrafterKind>::values) names.emplace_back(each);
  throw UserError(fmt::format("/drafter is '{}'{}, expected one of {}; correct it", name,
                              did_you_mean(nearest_word(name, names)),
                              enum_choices<DrafterKind>()));
}

/// Why the answer is no longer; empty: the model ended it.
const char* cut_text(const ChatAnswer& answer) {
  if (answer.was_stopped) return "; stopped";
  switch (answer.stats.finish) {
    case FinishReason::Length:
      return "; cut off there (--max-tokens allows more)";
    case FinishReason::Context:
      return "; the context is full, which ended the text";
    default:
      return "";
  }
}

}  // namespace

Chat::Chat(ChatModel& model, const ChatOptions& options, ScreenAbilities abilities)
    : model_(model), json_(options.json), abilities_(abilities), seed_(options.seed) {
  dialogue_.set_system(options.system);
}

void Chat::run(MessageSource& source) {
  is_person_ = source.is_person();
  for (bool more = true; more;) {
    try {
      const std::optional<TypedMessage> message = source.next();
      more = message && take(*message);
    } catch (const UserError& error) {
      if (!is_person_) throw;
      print_note("{}\n", error.what());
    } catch (const Interrupted&) {
      if (!is_person_) throw;
    }
    if (interrupted() && !(is_person_ && take_sigint())) return;  // SIGTERM, or Ctrl-C of a pipe
  }
}

bool Chat::take(const TypedMessage& message) {
  if (!message.is_block)
    if (const auto given = read_slash_command(message.text)) return obey(*given);
  ask(message.text);
  return true;
}

bool Chat::obey(const GivenSlashCommand& given) {
  const std::string& text = given.argument;
  switch (given.command) {
    case SlashCommand::System:
      dialogue_.set_system(text);
      print_note("{}\n", text.empty() ? "no system message from now on" : "system message set");
      break;
    case SlashCommand::Regen:
      answer_again();
      break;
    case SlashCommand::Undo:
      if (const auto turn = dialogue_.undo())
        print_note("taken back: {}\n", turn->question);
      else
        throw UserError("/undo: nothing was said yet, expected a message to take back; ask first");
      times_again_ = 0;
      break;
    case SlashCommand::Save:
      dialogue_.save(text);
      print_note("saved: {}\n", text);
      break;
    case SlashCommand::Load:
      dialogue_ = Dialogue::load(text);
      times_again_ = 0;
      print_note("{} messages with their answers\n", dialogue_.turns().size());
      break;
    case SlashCommand::Drafter:
      try {
        set_drafter(text);
      } catch (const UserError& error) {  // the drafter stays the one it was
        if (is_person_) throw;
        print_note("{}\n", error.what());
      }
      break;
    case SlashCommand::Temperature:
      set_temperature(text);
      break;
    case SlashCommand::Seed:
      seed_ = value_of<uint64_t>("/seed", text);
      times_again_ = 0;
      break;
    case SlashCommand::Stats:
      note_stats();
      break;
    case SlashCommand::Help:
      note_shown(slash_help());
      note_bytes(tint_legend(abilities_));
      break;
    case SlashCommand::Quit:
      return false;
  }
  return true;
}

void Chat::set_drafter(const std::string& name) {
  InferConfig settings = model_.settings();
  if (!name.empty()) {
    settings.drafter = drafter_of(name);
    model_.change(settings);
  }
  print_note("drafter {}: {}\n", enum_name(settings.drafter), spec_of(settings.drafter).summary);
}

void Chat::set_temperature(const std::string& text) {
  InferConfig settings = model_.settings();
  settings.sampling.temperature = value_of<double>("/temperature", text);
  if (settings.sampling.temperature < 0)
    throw UserError(fmt::format("/temperature is {}, expected 0 or more; correct it", text));
  model_.change(settings);
}

void Chat::ask(const std::string& question) {
  const ChatAnswer given = answer(question, seed_);
  times_again_ = 0;
  if (given.text.empty() && given.was_stopped) return;  // as if it had not been asked
  dialogue_.add({question, given.text});
}

void Chat::answer_again() {
  const std::optional<DialogueTurn> last = dialogue_.undo();
  if (!last)
    throw UserError("/regen: nothing was said yet, expected a message to answer again; ask first");
  if (is_person_ && model_.settings().sampling.temperature == 0)
    print_note("at temperature 0 the answer stays the same; /temperature 0.7 samples\n");
  struct PutBack {  // unless there is another answer
    Dialogue& dialogue;
    DialogueTurn turn;
    ~PutBack() { dialogue.add(std::move(turn)); }
  } put_back{dialogue_, *last};
  const ChatAnswer given = answer(last->question, seed_ + ++times_again_);
  if (!given.text.empty() || !given.was_stopped) put_back.turn.answer = given.text;
}

ChatAnswer Chat::answer(const std::string& question, uint64_t seed) {
  std::vector<ChatMessage> messages = dialogue_.messages();
  messages.push_back({"user", question});
  AnswerScreen screen(abilities_);
  AnswerWatcher watcher{.show =
                            [&](std::string_view piece, std::optional<DrafterKind> drafter) {
                              if (!json_) screen.show(piece, drafter);
                            },
                        .end_step = [&](const DecodeStats& stats) { screen.end_step(stats); }};
  if (!json_) screen.begin();
  const ChatAnswer out = model_.answer(messages, seed, watcher);
  if (json_)
    print_answer_json(question, out);
  else
    screen.finish();
  all_.emitted += out.stats.emitted;
  all_.steps += out.stats.steps;
  seconds_ += out.times.decode_s();
  room_used_ = out.prompt_tokens + out.stats.emitted;
  if (is_person_) note_end(out);
  return out;
}

void Chat::print_answer_json(const std::string& question, const ChatAnswer& answer) const {
  print_json(nlohmann::json{{"prompt", question},
                            {"text", answer.text},
                            {"stats",
                             {{"steps", answer.stats.steps},
                              {"emitted", answer.stats.emitted},
                              {"proposed", answer.stats.proposed},
                              {"accepted", answer.stats.accepted},
                              {"prompt_tokens", answer.prompt_tokens},
                              {"cached_prompt_tokens", answer.stats.cached_prompt_tokens},
                              {"prefill_s", answer.times.prefill_s},
                              {"decode_s", answer.times.decode_s()}}}});
}

void Chat::note_end(const ChatAnswer& answer) const {
  const bool dims = abilities_.has_colors && stderr_is_terminal();
  note_bytes(fmt::format(
      "{}{}{}{}{}\n", dims ? "\x1b[2m" : "", speed_text(answer.stats, answer.times.decode_s()),
      model_.is_lossless() ? "" : ", not lossless", cut_text(answer), dims ? "\x1b[0m" : ""));
}

void Chat::note_stats() const {
  print_note("all answers: {}\nthe conversation: {} of {} tokens of the context\n",
             speed_text(all_, seconds_), room_used_, model_.context());
}

}  // namespace medusa
