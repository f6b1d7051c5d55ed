// A request's body with the keys of its objects in the client's order, which schemas and the inputs
// of calls keep.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace medusa {

/// Parses the body when it is first asked for; most requests never do.
///
/// Thread safety: none.
class OrderedBody {
 public:
  /// @param text  JSON that has been parsed before; must outlive this.
  explicit OrderedBody(std::string_view text) : text_(text) {}

  const nlohmann::ordered_json& json() {
    if (json_.is_null()) json_ = nlohmann::ordered_json::parse(text_);
    return json_;
  }

 private:
  std::string_view text_;
  nlohmann::ordered_json json_;
};

}  // namespace medusa
