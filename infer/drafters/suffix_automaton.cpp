#include "infer/drafters/suffix_automaton.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {
namespace {

uint64_t edge_key(int32_t state, TokenId token) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32) | static_cast<uint32_t>(token);
}

}  // namespace

SuffixAutomaton::SuffixAutomaton(int32_t max_context) : max_context_(max_context), states_(1) {
  MEDUSA_ASSERT(max_context >= 1, max_context);
}

SuffixAutomaton::Edge* SuffixAutomaton::find_edge(int32_t state, TokenId token) {
  const auto found = edge_index_.find(edge_key(state, token));
  return found == edge_index_.end() ? nullptr : &edges_[found->second];
}

void SuffixAutomaton::add_edge(int32_t from, TokenId token, int32_t to) {
  edge_index_.emplace(edge_key(from, token), edges_.size());
  edges_.push_back({token, to, at(from).first_edge});
  at(from).first_edge = static_cast<int32_t>(edges_.size()) - 1;
}

/// A state for the strings of `state` up to this length; the longer ones stay where they are.
int32_t SuffixAutomaton::clone(int32_t state, int64_t length) {
  const auto copy = static_cast<int32_t>(states_.size());
  states_.push_back(at(state));
  at(copy).length = length;
  at(copy).first_edge = -1;
  at(state).link = copy;
  for (int32_t edge = at(state).first_edge; edge >= 0;) {
    const Edge each = edges_[static_cast<size_t>(edge)];  // a copy: add_edge moves the vector
    add_edge(copy, each.token, each.to);
    edge = each.next;
  }
  return copy;
}

/// The textbook step: a state for the whole text with the token, and its link.
void SuffixAutomaton::extend(TokenId token) {
  const auto created = static_cast<int32_t>(states_.size());
  states_.push_back({size_ + 1, 0, -1, 1, size_});
  int32_t from = whole_;
  whole_ = created;
  for (; from >= 0 && find_edge(from, token) == nullptr; from = at(from).link)
    add_edge(from, token, created);
  if (from < 0) return;  // a token never seen: the link is the empty string
  const int32_t to = find_edge(from, token)->to;
  if (at(to).length == at(from).length + 1) {
    at(created).link = to;
    return;
  }
  const int32_t copy = clone(to, at(from).length + 1);
  at(created).link = copy;
  for (; from >= 0; from = at(from).link) {
    Edge* edge = find_edge(from, token);
    if (edge == nullptr || edge->to != to) return;
    edge->to = copy;
  }
}

/// The state that holds the match's suffix of at most this length.
SuffixAutomaton::Match SuffixAutomaton::cut(Match match, int64_t length) const {
  match.length = static_cast<int32_t>(std::min<int64_t>(match.length, length));
  while (match.state != 0 && at(at(match.state).link).length >= match.length)
    match.state = at(match.state).link;
  return match;
}

/// Moves the match on by a token, before the text holds it: what is found then occurred before.
void SuffixAutomaton::follow(TokenId token) {
  const Edge* edge = find_edge(match_.state, token);
  while (edge == nullptr && match_.state != 0) {
    match_.state = at(match_.state).link;
    match_.length = static_cast<int32_t>(at(match_.state).length);
    edge = find_edge(match_.state, token);
  }
  if (edge != nullptr) match_ = {edge->to, match_.length + 1};
}

void SuffixAutomaton::append(TokenId token) {
  follow(token);
  extend(token);
  match_ = cut(match_, max_context_);  // also where the match's state was split
  for (int32_t state = match_.state; state > 0; state = at(state).link) {
    ++at(state).count;
    at(state).last = size_;
  }
  ++size_;
}

SuffixAutomaton::Match SuffixAutomaton::longest_match(int32_t max_length) const {
  MEDUSA_ASSERT(max_length >= 1 && max_length <= max_context_, max_length, max_context_);
  return cut(match_, max_length);
}

SuffixAutomaton::Match SuffixAutomaton::shorter(const Match& match) const {
  if (match.state == 0) return {};
  const int32_t link = at(match.state).link;
  return {link, static_cast<int32_t>(at(link).length)};
}

std::vector<SuffixAutomaton::Continuation> SuffixAutomaton::continuations(int32_t state) const {
  std::vector<Continuation> out;
  for (int32_t edge = at(state).first_edge; edge >= 0;
       edge = edges_[static_cast<size_t>(edge)].next) {
    const Edge& each = edges_[static_cast<size_t>(edge)];
    out.push_back({each.token, at(each.to).count, at(each.to).last, each.to});
  }
  std::sort(out.begin(), out.end(), [](const Continuation& a, const Continuation& b) {
    return a.count != b.count ? a.count > b.count : a.last > b.last;
  });
  return out;
}

}  // namespace medusa
