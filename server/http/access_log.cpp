#include "server/http/access_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/output.h"

namespace medusa {
namespace {

constexpr size_t kLongestPath = 200;  // bytes of it in a line

/// To the microsecond, which is what anybody reads.
double rounded(double seconds) { return static_cast<double>(std::llround(seconds * 1e6)) / 1e6; }

bool is_empty(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

/// Refuses a file that holds something else than lines of ours: a model, for example.
void expect_log(const std::string& place) {
  constexpr std::string_view kBegin = R"({"time":")";
  std::ifstream file(place, std::ios::binary);
  file >> std::ws;  // behind a full disk a log may begin with the end of a line
  std::string begin(kBegin.size(), '\0');
  file.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (!begin.empty() && begin != kBegin)
    throw UserError(fmt::format(
        "--log {}: the file holds something else, expected a new one or the log of a server "
        "before; choose another file, or remove this one",
        place));
}

}  // namespace

std::string log_line(const LoggedRequest& request, std::chrono::system_clock::time_point now) {
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  nlohmann::ordered_json out{
      {"time",
       fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z",
                   fmt::gmtime(std::chrono::system_clock::to_time_t(now)), milliseconds % 1000)},
      {"method", request.method},
      {"path", request.path.substr(0, kLongestPath)},
      {"status", request.status},
      {"seconds", rounded(request.seconds)}};
  const auto add_text = [&out](const char* name, const std::string& text) {
    if (!text.empty()) out[name] = text;
  };
  if (request.client_left) out["client_left"] = true;
  add_text("traceparent", request.traceparent);
  add_text("error_field", request.error_field);
  add_text("error_code", request.error_code);
  add_text("bug", request.bug);
  if (const auto& made = request.generated) {
    out["prompt_tokens"] = made->prompt_tokens;
    out["tokens"] = made->tokens;
    if (made->first_token_seconds) out["first_token_seconds"] = rounded(*made->first_token_seconds);
    out["steps"] = made->stats.steps;
    out["draft_tokens"] = made->stats.proposed;
    out["accepted_draft_tokens"] = made->stats.accepted;
    out["finish_reasons"] = made->reasons;
  }
  if (!request.prompts.empty()) out["prompts"] = request.prompts;
  return json_text(out);
}

void note_refusal(const ApiError& error, LoggedRequest& log) {
  log.error_code = error.code();
  log.error_field = error.field();
  if (error.status() == 500) log.bug = error.what();
}

std::string valid_traceparent(std::string_view header) {
  constexpr std::string_view kForm = "00-00000000000000000000000000000000-0000000000000000-00";
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool has_form =
      header.size() == kForm.size() &&
      std::equal(header.begin(), header.end(), kForm.begin(),
                 [&](char c, char form) { return form == '-' ? c == '-' : is_digit(c); });
  const auto is_zero = [](std::string_view id) {
    return id.find_first_not_of('0') == std::string_view::npos;
  };
  if (!has_form || header.starts_with("ff") || is_zero(header.substr(3, 32)) ||
      is_zero(header.substr(36, 16)))
    return {};
  return std::string(header);
}

AccessLog::AccessLog(const std::string& place) : place_(place) {
  if (place.empty() || place == "-") return;
  std::error_code unreadable;  // then opening says why
  if (std::filesystem::is_regular_file(place, unreadable)) expect_log(place);
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;  // a FIFO does not hold us up
  file_ = std::make_unique<Descriptor>(place, kFlags, S_IRUSR | S_IWUSR);
  if (file_->get() < 0)
    throw UserError(fmt::format(
        "--log {}: cannot be written ({}), expected a file that you may write to; choose one",
        place, std::strerror(errno)));
}

bool AccessLog::send(std::string line) {
  if (file_) {
    // What was begun ends there, unless it was taken away, and the next lines are whole.
    if (is_torn_ && !is_empty(file_->get())) line.insert(0, "\n");
    const ssize_t put = ::write(file_->get(), line.data(), line.size());
    if (put > 0) is_torn_ = put != std::ssize(line);
    return put == std::ssize(line);
  }
  if (!stdout_takes_bytes()) return false;
  try {
    print_json_line(std::string_view(line).substr(0, line.size() - 1));
  } catch (const UserError&) {
    return false;
  } catch (const ReaderGone&) {
    return false;
  }
  return true;
}

void AccessLog::write(const LoggedRequest& request) {
  if (place_.empty()) return;
  if (send(log_line(request, std::chrono::system_clock::now()) + "\n") ||
      std::exchange(has_failed_, true))
    return;
  print_note("note: --log {}: lines are lost, nobody takes them\n", place_);
}

}  // namespace medusa
