// The file of questions that the model wrote, and whether somebody has changed it since.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// A line for each question, as read_prompts() reads them. The first says what wrote them.
/// @param made_with  the settings that decide them.
std::string question_lines(const std::vector<std::string>& questions, const std::string& made_with);

/// What question_lines() was given. Empty: somebody else wrote the lines, or has changed any of
/// them since.
/// @param lines  that read_prompts() has read.
std::string questions_made_with(std::string_view lines);

}  // namespace medusa
