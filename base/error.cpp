#include "base/error.h"

#include "base/shown_text.h"

namespace medusa {

UserError::UserError(const std::string& message) : std::runtime_error(shown_text(message)) {}

}  // namespace medusa
