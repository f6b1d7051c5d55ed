// One answer of APIs that give no second one: its texts and calls in their order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/api/completion_request.h"
#include "server/tool_calls/tool_call_reader.h"

namespace medusa {

/// A part that came, as it is added to the parts of an answer.
struct AddedPart {
  AnswerPart part;
  size_t index = 0;     // of the part of the answer that it is or belongs to
  bool begins = false;  // it is that part's beginning
};

/// Thread safety: none.
class SingleAnswer {
 public:
  /// @param call_id  calls get ids that begin with it.
  SingleAnswer(const CompletionRequest& request, std::string call_id)
      : reader_(request.may_call, std::move(call_id)) {}

  /// Takes a piece and gives what it adds.
  std::vector<AddedPart> add(const GenerationPiece& piece) {
    num_tokens_ += std::ssize(piece.tokens);
    return keep(reader_.add(piece.text));
  }
  std::vector<AddedPart> add(const GenerationEnd& end) {
    end_ = end;
    return keep(reader_.finish());
  }

  /// Lists all parts so far; neighboring texts are one.
  const std::vector<AnswerPart>& parts() const { return parts_; }
  const GenerationEnd& end() const { return end_; }
  int64_t num_tokens() const { return num_tokens_; }
  int num_calls() const { return reader_.num_calls(); }
  bool is_cut_off() const { return end_.reason() == std::string("length"); }

 private:
  std::vector<AddedPart> keep(std::vector<AnswerPart> added) {
    std::vector<AddedPart> out;
    for (AnswerPart& each : added) {
      const bool begins = each.call || parts_.empty() || parts_.back().call;
      if (begins)
        parts_.push_back(each);
      else
        parts_.back().text += each.text;
      out.push_back({std::move(each), parts_.size() - 1, begins});
    }
    return out;
  }

  ToolCallReader reader_;
  std::vector<AnswerPart> parts_;
  GenerationEnd end_;
  int64_t num_tokens_ = 0;
};

}  // namespace medusa
