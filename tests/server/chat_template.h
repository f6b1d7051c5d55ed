// The chat template of the tests' server: an empty line between messages, the names of tools before
// them, and calls as <tool_call>.
#pragma once

namespace medusa::fixtures {

inline constexpr const char* kChatTemplate =
    R"({% if tools %}{% for t in tools %}{{ t.function.name }} {% endfor %}{% endif %})"
    R"({% for m in messages %}{{ '' if loop.first else '\n\n' }}{{ m.content }})"
    R"({% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", )"
    R"("arguments": {{ c.function.arguments|tojson }}}</tool_call>{% endfor %}{% endif %}{% endfor %})";

}  // namespace medusa::fixtures
