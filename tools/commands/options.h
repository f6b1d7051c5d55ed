// The options of one subcommand: declared once, parsed, and listed for --help and completion.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fields.h"

namespace medusa {

/// One option or positional, as --help and completion show it.
struct OptionRow {
  std::string name;      // "--config"; of a positional its argument, "MODEL"
  std::string argument;  // "FILE"; empty: a flag. FILE, FOLDER, PATH, MODEL: a path
  std::string help;
  std::string group;                 // title of the part of --help
  std::vector<std::string> choices;  // what it may be; empty: anything
  bool is_positional = false;
  bool is_list = false;  // several values with commas between them
};

/// The words of an enum, for OptionRow::choices.
template <typename E>
std::vector<std::string> enum_words() {
  std::vector<std::string> out;
  for (const auto& [name, value] : EnumNames<E>::values) out.emplace_back(name);
  return out;
}

class Options {
 public:
  /// What gets the text of an option; it may throw UserError.
  using Take = std::function<void(const std::string&)>;

  /// @param command  that messages begin with: "train".
  explicit Options(std::string command);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  const std::string& command() const { return command_; }

  /// The title under which --help lists what is added from here on.
  void group(const std::string& title) { group_ = title; }

  void flag(const std::string& name, bool& value, const std::string& help);

  /// @param name      "--batch", or "--batch,--slots" with an older name that stays.
  /// @param argument  what stands for the value in --help: "N".
  template <typename T>
  void value(const std::string& name, T& value, const std::string& argument,
             const std::string& help, const detail::RuleFor<T>& rule = {}) {
    add(row<T>(argument, help), name,
        [this, name, &value, rule](const std::string& text) { read(name, text, value, rule); });
  }

  /// One value or more, with commas between them.
  template <typename T>
  void list(const std::string& name, std::vector<T>& values, const std::string& argument,
            const std::string& help, const Rule<T>& rule = {}) {
    OptionRow added = row<T>(argument, help);
    added.is_list = true;
    add(std::move(added), name, [this, name, &values, rule](const std::string& text) {
      values.clear();
      for (const std::string& each : parts(text)) read(name, each, values.emplace_back(), rule);
    });
  }

  /// Values of the option that was added last, for completion.
  void offer(std::vector<std::string> choices) { rows_.back().choices = std::move(choices); }

  /// An option that does something else with its text; may be given several times.
  void repeatable(const std::string& name, const std::string& argument, const std::string& help,
                  const Take& take, std::vector<std::string> choices = {});

  /// As value(), but the text goes to a function.
  void text(const std::string& name, const std::string& argument, const std::string& help,
            const Take& take, std::vector<std::string> choices = {});

  /// An argument without a name, in the order in which they are added.
  void positional(const std::string& name, std::string& value, const std::string& help,
                  bool required = false, std::vector<std::string> choices = {});

  /// All arguments without a name that are left.
  void positionals(const std::string& name, std::vector<std::string>& values,
                   const std::string& help);

  /// Refuses a command line without this option.
  void require(const std::string& name);
  /// Refuses a command line with both.
  void exclude(const std::string& one, const std::string& other);

  /// Keys of settings that a misspelt option may have meant: "train.epochs" for --epochs.
  void suggest_keys(std::vector<std::string> keys) { keys_ = std::move(keys); }

  /// @param arguments  without the program's and the command's name.
  /// @throws UserError  unknown option (the nearest one is named), a value missing or wrong.
  void parse(const std::vector<std::string>& arguments);

  /// In the order in which they were added.
  const std::vector<OptionRow>& rows() const { return rows_; }

 private:
  struct Parser;  // CLI11, which is slow to compile

  template <typename T>
  OptionRow row(const std::string& argument, const std::string& help) const {
    OptionRow out;
    out.argument = argument;
    out.help = help;
    if constexpr (std::is_enum_v<T>) out.choices = enum_words<T>();
    return out;
  }

  template <typename T>
  void read(const std::string& name, const std::string& text, T& value,
            const detail::RuleFor<T>& rule) const {
    if constexpr (detail::IsOptional<T>::value) {
      read(name, text, value.emplace(), rule);
    } else {
      std::vector<std::string> words;
      if constexpr (std::is_enum_v<T>) words = enum_words<T>();
      if (!detail::parse_scalar(text, value))
        refuse(name, text, detail::kind_of<T>() + (rule.holds ? " " + rule.text : ""), words);
      if (rule.holds && !rule.holds(value)) refuse(name, text, rule.text, words);
    }
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& text,
                           const std::string& expected,
                           const std::vector<std::string>& words) const;
  static std::vector<std::string> parts(const std::string& text);
  void check_names(const std::vector<std::string>& arguments) const;
  std::string suggestion(const std::string& name) const;
  void add(OptionRow row, const std::string& name, const Take& take);

  std::string command_, group_ = "Options";
  std::vector<OptionRow> rows_;
  std::map<std::string, bool> names_;  // of options, older ones too -> whether a value follows
  std::vector<std::string> keys_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace medusa
