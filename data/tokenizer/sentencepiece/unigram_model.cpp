#include "data/tokenizer/sentencepiece/unigram_model.h"

#include <algorithm>

#include "base/utf8.h"

namespace medusa {

UnigramModel::UnigramModel(std::vector<double> scores, double unknown_score, Sums sums)
    : scores_(std::move(scores)), unknown_score_(unknown_score), sums_(sums) {}

template <typename Sum>
void UnigramModel::best_cut(std::string_view text, const UnknownText& unknown,
                            std::vector<TokenId>& ids) const {
  struct Way {  // the best one to cut the text up to here
    Sum score = 0;
    int32_t start = -1;  // of the last piece; -1: there is no way yet
    TokenId piece = -1;  // -1: an unknown character
  };
  std::vector<Way> best(text.size() + 1);
  best[0].start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t character = read_utf8(text.substr(at)).size;
    const auto offer = [&](size_t end, double score, TokenId piece) {
      const auto sum = static_cast<Sum>(static_cast<Sum>(score) + best[at].score);
      if (best[end].start < 0 || sum > best[end].score)
        best[end] = {sum, static_cast<int32_t>(at), piece};
    };
    bool is_known = false;  // the character by itself is a piece
    int32_t node = 0;
    for (size_t end = at; end < text.size();) {
      node = trie_.child(node, text[end++]);
      if (node < 0) break;
      const TokenId piece = trie_.piece_at(node);
      if (piece < 0) continue;
      offer(end, scores_[static_cast<size_t>(piece)], piece);
      is_known = is_known || end - at == character;
    }
    if (!is_known) offer(at + character, unknown_score_, -1);
    at += character;
  }
  std::vector<size_t> ends;
  for (size_t end = text.size(); end > 0; end = static_cast<size_t>(best[end].start))
    ends.push_back(end);
  const size_t begin = ids.size();
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Way& way = best[*end];
    const auto start = static_cast<size_t>(way.start);
    if (way.piece >= 0)
      ids.push_back(way.piece);
    else
      unknown.write(text.substr(start, *end - start), begin, ids);
  }
}

void UnigramModel::encode(std::string_view text, const UnknownText& unknown,
                          std::vector<TokenId>& ids) const {
  if (sums_ == Sums::Float)
    best_cut<float>(text, unknown, ids);
  else
    best_cut<double>(text, unknown, ids);
}

}  // namespace medusa
