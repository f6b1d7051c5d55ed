#include "tools/chat/message_source.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "data/text_file.h"
#include "tools/chat/line_editor.h"

namespace medusa {
namespace {

class TypedMessages : public MessageSource {
 public:
  std::optional<TypedMessage> next() override {
    for (;;) {
      const EditedLine line = editor_.read(lines_.is_in_block() ? "… " : "> ");
      if (line.end == EditedLine::End::Closed) return std::nullopt;
      if (line.end == EditedLine::End::Cleared) {
        lines_.clear();
        continue;
      }
      if (auto message = lines_.add(line.text)) return message;
    }
  }
  bool is_person() const override { return true; }

 private:
  LineEditor editor_;
  MessageLines lines_;
};

class PipedMessages : public MessageSource {
 public:
  std::optional<TypedMessage> next() override {
    for (;;) {
      const std::optional<std::string> line = next_line();
      if (!line) {
        lines_.finish();
        return std::nullopt;
      }
      if (auto message = lines_.add(*line)) return message;
    }
  }
  bool is_person() const override { return false; }

 private:
  static constexpr size_t kMostLineBytes = size_t{64} << 20;  // a device may have no end of lines

  std::optional<std::string> next_line() {
    size_t end;
    size_t searched = 0;
    while ((end = read_.find('\n', searched)) == std::string::npos && !at_end_) {
      searched = read_.size();
      read_more();
    }
    if (end == std::string::npos && read_.empty()) return std::nullopt;
    std::string line = read_.substr(0, end);
    if (std::exchange(is_first_, false) && line.starts_with(kByteOrderMark))
      line.erase(0, kByteOrderMark.size());
    read_.erase(0, end == std::string::npos ? end : end + 1);
    return line;
  }

  void read_more() {
    char buffer[1 << 16];
    pollfd readable{STDIN_FILENO, POLLIN, 0};
    while (::poll(&readable, 1, 0) <= 0) wait_a_moment(STDIN_FILENO, POLLIN);
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got < 0)
      throw UserError(fmt::format(
          "standard input: cannot be read ({}), expected a terminal, file or pipe with messages; "
          "start the program with one",
          std::strerror(errno)));
    at_end_ = got == 0;
    read_.append(buffer, static_cast<size_t>(got));
    if (read_.size() > kMostLineBytes)
      throw UserError(
          fmt::format("standard input: holds a line of more than {} bytes, expected messages in "
                      "lines of text; check what is sent",
                      kMostLineBytes));
  }

  MessageLines lines_;
  std::string read_;  // and not yet given out
  bool at_end_ = false;
  bool is_first_ = true;  // the next line
};

}  // namespace

std::unique_ptr<MessageSource> open_message_source() {
  if (::isatty(STDIN_FILENO) == 1) return std::make_unique<TypedMessages>();
  return std::make_unique<PipedMessages>();
}

}  // namespace medusa
