#include "data/tokenizer/sentencepiece/piece_merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/text_normalizer.h"

namespace medusa {
namespace {

/// Where each character of a piece ends, except the last.
std::vector<size_t> inner_cuts(std::string_view piece) {
  std::vector<size_t> cuts;
  for (size_t at = 0; at < piece.size();) {
    at += read_utf8(piece.substr(at)).size;
    if (at < piece.size()) cuts.push_back(at);
  }
  return cuts;
}

/// True if a space mark stands behind another character.
bool reaches_over_words(std::string_view piece) {
  for (size_t at = piece.find(kSpaceMark, 1); at != std::string_view::npos;
       at = piece.find(kSpaceMark, at + 1))
    if (!piece.substr(0, at).ends_with(kSpaceMark)) return true;
  return false;
}

}  // namespace

/// Takes over the single characters of the vocabulary.
PieceMerges::PieceMerges(const PieceIds& ids, size_t num_merges) : merges_(num_merges) {
  ascii_.fill(-1);
  for (const auto& [piece, id] : ids) {
    first_hidden_ = std::max(first_hidden_, id + 1);
    words_stand_alone_ = words_stand_alone_ && !reaches_over_words(piece);
    const auto step = read_utf8(piece);
    if (step.size != piece.size() || step.kind != Utf8Step::Kind::Character) continue;
    if (step.codepoint < ascii_.size())
      ascii_[step.codepoint] = id;
    else
      characters_.emplace(step.codepoint, id);
  }
}

PieceMerges PieceMerges::by_score(const PieceIds& ids, const std::vector<double>& scores) {
  struct Merge {
    double score;
    std::string_view left;
    std::string_view right;
    TokenId merged;
  };
  const auto is_character = [](std::string_view text) {
    return read_utf8(text).size == text.size();
  };
  std::vector<Merge> merges;
  for (const auto& [piece, id] : ids) {
    for (const size_t cut : inner_cuts(piece)) {
      const auto left = piece.substr(0, cut);
      const auto right = piece.substr(cut);
      if ((ids.contains(left) || is_character(left)) &&
          (ids.contains(right) || is_character(right)))
        merges.push_back({scores[static_cast<size_t>(id)], left, right, id});
    }
  }
  std::sort(merges.begin(), merges.end(),
            [](const Merge& a, const Merge& b) { return a.score > b.score; });
  PieceMerges model(ids, merges.size());
  const auto symbol_of = [&](std::string_view text) {
    if (const auto found = ids.find(text); found != ids.end()) return found->second;
    const auto next = model.first_hidden_ + static_cast<TokenId>(model.hidden_.size());
    const uint32_t point = read_utf8(text).codepoint;
    TokenId& symbol = point < model.ascii_.size()
                          ? model.ascii_[point]
                          : model.characters_.emplace(point, -1).first->second;
    if (symbol < 0) {
      symbol = next;
      model.hidden_.emplace_back(text);
    }
    return symbol;
  };
  int32_t rank = 0;  // pieces of equal score share it, so that the leftmost goes first
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i > 0 && merges[i].score != merges[i - 1].score) ++rank;
    model.merges_.add(symbol_of(merges[i].left), symbol_of(merges[i].right), rank,
                      merges[i].merged);
  }
  return model;
}

PieceMerges PieceMerges::by_list(const PieceIds& ids,
                                 const std::vector<std::pair<std::string, std::string>>& merges,
                                 const std::string& source) {
  const auto fail = [&](const std::string& found, const char* expected) {
    throw UserError(fmt::format("{}: {}, expected {}; convert or download the tokenizer again",
                                source, found, expected));
  };
  PieceMerges model(ids, merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto merged = ids.find(left + right);
    if (left_id == ids.end() || right_id == ids.end() || merged == ids.end())
      fail(fmt::format("the merge '{} {}' is not one of tokens", left, right),
           "two tokens that make a third");
    else if (!model.merges_.add(left_id->second, right_id->second, static_cast<int32_t>(rank),
                                merged->second))
      fail(fmt::format("the merge '{} {}' is there twice", left, right), "every merge once");
  }
  return model;
}

/// The symbol of the character at the start of text, -1 if it has none; size becomes its bytes.
TokenId PieceMerges::symbol_at(std::string_view text, size_t& size) const {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < ascii_.size()) {
    size = 1;
    return ascii_[first];
  }
  const auto step = read_utf8(text);
  size = step.size;
  const auto found = characters_.find(step.codepoint);
  return found == characters_.end() ? -1 : found->second;
}

/// Merges the symbols ids[run], … and writes those that are no pieces after all.
void PieceMerges::write_run(size_t run, size_t begin, const UnknownText& unknown,
                            std::vector<TokenId>& ids) const {
  merges_.apply(ids, run);
  const auto first = ids.begin() + static_cast<int64_t>(run);
  if (hidden_.empty() ||
      std::none_of(first, ids.end(), [&](TokenId id) { return id >= first_hidden_; }))
    return;
  const std::vector<TokenId> symbols(first, ids.end());
  ids.resize(run);
  for (const TokenId symbol : symbols) {
    if (symbol < first_hidden_)
      ids.push_back(symbol);
    else
      unknown.write(hidden_[static_cast<size_t>(symbol - first_hidden_)], begin, ids);
  }
}

void PieceMerges::encode(std::string_view text, const UnknownText& unknown,
                         std::vector<TokenId>& ids) const {
  const size_t begin = ids.size();
  size_t run = begin;      // the symbols from here on are not merged yet
  bool after_mark = true;  // the last character was a space mark, or there was none
  const auto finish_run = [&] {
    write_run(run, begin, unknown, ids);
    run = ids.size();
  };
  for (size_t at = 0; at < text.size();) {
    const auto rest = text.substr(at);
    const bool is_mark = rest.starts_with(kSpaceMark);
    if (is_mark && !after_mark && words_stand_alone_) finish_run();
    after_mark = is_mark;
    size_t size = 0;
    const TokenId symbol = symbol_at(rest, size);
    if (symbol >= 0) {
      ids.push_back(symbol);
    } else {
      finish_run();
      unknown.write(rest.substr(0, size), begin, ids);
      run = ids.size();
    }
    at += size;
  }
  finish_run();
}

}  // namespace medusa
