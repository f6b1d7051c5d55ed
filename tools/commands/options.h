// The options of one subcommand: declared once, parsed, and listed for --help and completion.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fields.h"
#include "tools/front/command_page.h"

namespace medusa {

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

  /// @param page      of the command, without options.
  /// @param settings  that a misspelt option may have meant.
  Options(CommandPage page, std::vector<FieldHelp> settings);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// With the options that were added.
  const CommandPage& page() const { return page_; }

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
      for (const std::string& each : list_parts(text))
        read(name, each, values.emplace_back(), rule);
    });
  }

  /// The words that the option that was added last may be.
  void offer(std::vector<std::string> choices) { page_.rows.back().choices = std::move(choices); }

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

  /// @param arguments  without the program's and the command's name.
  /// @throws UserError  unknown option (the nearest one is named), a value missing or wrong.
  void parse(const std::vector<std::string>& arguments);

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
      if (!detail::parse_scalar(text, value))
        refuse(name, text, detail::kind_of<T>() + (rule.holds ? " " + rule.text : ""));
      if (rule.holds && !rule.holds(value)) refuse(name, text, rule.text);
    }
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& text,
                           const std::string& expected) const;
  /// Refuses an empty text where a file or folder is named, then goes on with take.
  Take checked(const std::string& name, const std::string& argument, const Take& take) const;
  void add(OptionRow row, const std::string& name, const Take& take);

  CommandPage page_;
  std::vector<FieldHelp> settings_;
  std::string group_ = "Options";
  std::unique_ptr<Parser> parser_;
};

}  // namespace medusa
