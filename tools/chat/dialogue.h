// What was said in a chat so far, and the file that keeps it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/chat/conversations.h"

namespace medusa {

/// A question and its answer.
struct DialogueTurn {
  std::string question, answer;
};

class Dialogue {
 public:
  const std::vector<DialogueTurn>& turns() const { return turns_; }
  const std::string& system() const { return system_; }  // empty: none of the user's

  void set_system(std::string text) { system_ = std::move(text); }
  void add(DialogueTurn turn) { turns_.push_back(std::move(turn)); }
  /// Takes the last turn back; nothing where there is none.
  std::optional<DialogueTurn> undo();

  /// The system message and all turns.
  std::vector<ChatMessage> messages() const;

  /// Writes {"messages": [{"role", "content"}, …]} on one line, which read_conversations() reads.
  /// @throws UserError  nothing was said yet; the file holds anything but such a conversation; it
  ///                    cannot be written.
  void save(const std::filesystem::path& file) const;

  /// @throws UserError  the file cannot be read, or holds no conversation, several of them, or one
  ///                    in which user and assistant do not take turns.
  static Dialogue load(const std::filesystem::path& file);

 private:
  std::string system_;
  std::vector<DialogueTurn> turns_;
};

}  // namespace medusa
