// What the two processes of a grammar's trial tell each other: frames of a size and so many bytes.
// First the vocabulary, then a frame for each grammar, which a frame answers.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "infer/grammar/grammar.h"

namespace medusa {

constexpr int kTrialNeedsMemory = 3;  // the process's status

/// @returns  false: the other side has ended.
inline bool send_frame(int socket, std::string_view bytes) {
  const uint64_t size = bytes.size();
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  frame += bytes;
  for (std::string_view left = frame; !left.empty();) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    left.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

/// @returns  nothing: the other side has ended.
inline std::optional<std::string> receive_frame(int socket) {
  const auto fill = [socket](std::span<char> into) {
    while (!into.empty()) {
      const ssize_t got = ::read(socket, into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      into = into.subspan(static_cast<size_t>(got));
    }
    return true;
  };
  std::array<char, sizeof(uint64_t)> head{};
  if (!fill(head)) return std::nullopt;
  uint64_t size = 0;
  std::memcpy(&size, head.data(), sizeof size);
  std::string bytes(size, '\0');
  if (!fill(bytes)) return std::nullopt;
  return bytes;
}

inline std::string packed(const nlohmann::json& value) {
  std::string out;
  nlohmann::json::to_msgpack(value, out);
  return out;
}

inline nlohmann::json binary(std::string_view bytes) {
  return nlohmann::json::binary({bytes.begin(), bytes.end()});
}

inline std::string text_of(const nlohmann::json& binary) {
  const auto& bytes = binary.get_binary();
  return {bytes.begin(), bytes.end()};
}

inline std::string packed(const GrammarVocabulary& vocabulary) {
  nlohmann::json bytes = nlohmann::json::array();
  for (const std::string& each : vocabulary.bytes) bytes.push_back(binary(each));
  return packed(nlohmann::json{{"bytes", std::move(bytes)}, {"ends", vocabulary.ends}});
}

inline GrammarVocabulary unpacked_vocabulary(const std::string& frame) {
  const nlohmann::json packed = nlohmann::json::from_msgpack(frame);
  GrammarVocabulary out;
  for (const nlohmann::json& each : packed.at("bytes")) out.bytes.push_back(text_of(each));
  out.ends = packed.at("ends").get<std::vector<TokenId>>();
  return out;
}

inline std::string packed(const GrammarText& grammar) {
  return packed(
      nlohmann::json{{"kind", static_cast<int>(grammar.kind)}, {"text", binary(grammar.text)}});
}

inline GrammarText unpacked_grammar(const std::string& frame) {
  const nlohmann::json packed = nlohmann::json::from_msgpack(frame);
  return {static_cast<GrammarKind>(packed.at("kind").get<int>()), text_of(packed.at("text"))};
}

}  // namespace medusa
