#include "data/chat/jinja/filters.h"

#include <fmt/format.h>

#include "data/chat/jinja/error.h"

namespace medusa::jinja {
namespace {

Filter find_filter(std::string_view name) {
  for (const FilterTable* table :
       {&text_filters(), &number_filters(), &sequence_filters(), &selection_filters()})
    if (const auto found = table->find(name); found != table->end()) return found->second;
  return nullptr;
}

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments,
                   Heap& heap) {
  const Filter filter = find_filter(name);
  if (!filter) throw Error(fmt::format("the filter '{}'", name), "one that this program knows");
  const Descent descent(heap);
  if (const Text* text = as_text(input)) heap.scan(text->utf8.size());
  return filter(input, arguments, heap);
}

}  // namespace medusa::jinja
