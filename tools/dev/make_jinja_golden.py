"""Renders chat templates and small pieces of Jinja with jinja2 for tests/data/jinja/.

    pip install jinja2==3.1.6
    python3 tools/dev/make_jinja_golden.py > tests/golden/jinja_templates.json

The environment is the one transformers makes: immutable sandbox, trim_blocks, lstrip_blocks, loop controls, tojson by
json.dumps, raise_exception, strftime_now (here of a fixed moment) and the block 'generation'. Each file of
tests/golden/chat_templates renders each conversation: the golden file holds the first 16 digits of the SHA-256 of the text,
null where jinja2 raised, or what the template said through raise_exception. Whole texts are kept for TEXTS.

The templates are our own. Together they use every statement, filter, test, method and kind of expression that 17 published ones
do (Llama 3.1 to 3.3, Qwen 2.5, Mistral Nemo, Gemma 2, Phi 3.5, DeepSeek R1, Command R+ and R7B, Hermes 2 and 3, Functionary 3.1
and 3.2, Firefunction 2); tools/dev/check_published.py compares on those themselves.
"""

import datetime
import hashlib
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)


class Refused(jinja2.TemplateError):
    pass


class Generation(jinja2.ext.Extension):
    """transformers marks the model's own words with this block; the text is the body's."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def refuse(message):
    raise Refused(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env


def message(role, content, **rest):
    return {"role": role, "content": content} | rest


def call(name, arguments, as_text=False, identifier="abcdef123"):
    return {"id": identifier, "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments) if as_text else arguments}}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather <now> & here's \"where\".",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "Ciudad, ciudad: Zürich 東京 👍"},
        "days": {"type": "integer", "description": "How many", "default": 3, "minimum": 1, "maximum": 7},
        "unit": {"type": "string", "description": "Unit.", "enum": ["C", "F"], "nullable": True, "examples": ["C", 1.5]}}},
    "return": {"type": "object", "description": "a report"}}}
NESTED = {"type": "function", "function": {
    "name": "book", "description": "Books.",
    "parameters": {"type": "object", "properties": {
        "guests": {"type": "array", "description": "all of them", "items": {"type": "object", "properties": {
            "name": {"type": "string", "description": "x"}, "age": {"oneOf": [{"type": "integer"}, {"type": "float", "format": "f"}]}},
            "required": ["name"]}},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "options": {"type": "object", "additionalProperties": {"type": ["string", "null"], "description": "y"},
                    "description": "z", "properties": {"deep": {"type": "boolean", "description": "d", "format": "bit"}}}},
        "required": ["guests"]}}}
OLD_TOOL = {"name": "search", "description": "Finds.", "parameter_definitions": {
    "query": {"type": "str", "description": "what", "required": True}, "top": {"type": "int", "description": "how many"}}}
CODE = {"type": "code_interpreter"}

USER = message("user", "What is gravity?")
SYSTEM = message("system", "Be brief.")
ANSWER = message("assistant", "A force.")
AGAIN = message("user", "  Are you sure?\n")
NON_ASCII = message("user", "Où est 東京? 👩‍💻 \"quoted\" <b>&amp;</b> it's \\n {{ x }}\t\u2028Ünïcödé ﬁn\u00a0")
ASK = [USER, message("assistant", None, tool_calls=[call("get_weather", {"city": "Zürich", "days": 2, "x": None, "y": [1.5, True]})]),
       message("tool", "{\"sunny\": true}", tool_call_id="abcdef123", name="get_weather"), message("assistant", "Sunny."), AGAIN]
ASK_TEXT = [USER, message("assistant", None, tool_calls=[call("get_weather", {"city": "Zürich"}, True)]),
            message("tool", "rain", tool_call_id="abcdef123", name="get_weather"), AGAIN]
ASK_TWICE = [SYSTEM, USER,
             message("assistant", "", tool_plan="I will look.", tool_calls=[
                 call("get_weather", {"city": "A"}), call("book", {"guests": []}, identifier="zzzzzzzz9")]),
             message("tool", "one", tool_call_id="abcdef123"), message("tool", "two", tool_call_id="zzzzzzzz9"),
             message("assistant", "Both done.")]
FIRE = {"functions": json.dumps([WEATHER["function"]]), "datetime": "2025-03-09 14:05:07"}

CONVERSATIONS = {
    "user": {"messages": [USER]},
    "no prompt to answer": {"messages": [USER], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, USER]},
    "three turns": {"messages": [USER, ANSWER, AGAIN]},
    "system, five turns": {"messages": [SYSTEM, USER, ANSWER, AGAIN, message("assistant", " Yes. "), message("user", "Ok")]},
    "ends with an answer": {"messages": [USER, ANSWER], "add_generation_prompt": False},
    "no messages": {"messages": []},
    "empty contents": {"messages": [message("system", ""), message("user", ""), message("assistant", ""), message("user", "")]},
    "non-ASCII": {"messages": [message("system", "Réponds en français 🇫🇷."), NON_ASCII, message("assistant", "東京は日本です。"), NON_ASCII]},
    "thoughts": {"messages": [USER, message("assistant", "<think>\nhm\n</think>\n\nA force."), AGAIN]},
    "two users in a row": {"messages": [USER, AGAIN]},
    "answer first": {"messages": [ANSWER, USER]},
    "unknown role": {"messages": [message("critic", "No."), USER]},
    "a later system": {"messages": [USER, SYSTEM, AGAIN]},
    "content that is a list": {"messages": [message("user", [{"type": "text", "text": "Hi"}])]},
    "no content": {"messages": [{"role": "user"}]},
    "tools": {"messages": [USER], "tools": [WEATHER]},
    "tools and system": {"messages": [SYSTEM, USER, ANSWER, AGAIN], "tools": [WEATHER, NESTED]},
    "bare tools": {"messages": [USER], "tools": [WEATHER["function"], NESTED["function"]]},
    "old tools": {"messages": [SYSTEM, USER], "tools": [OLD_TOOL]},
    "tools with code": {"messages": [USER, ANSWER, AGAIN], "tools": [WEATHER, CODE]},
    "empty tools": {"messages": [USER], "tools": []},
    "tool call": {"messages": ASK, "tools": [WEATHER]},
    "tool call without tools": {"messages": ASK},
    "tool call as text": {"messages": ASK_TEXT, "tools": [WEATHER]},
    "two tool calls": {"messages": ASK_TWICE, "tools": [WEATHER, NESTED]},
    "tools in the system turn": {"messages": [SYSTEM, USER], "tools": [WEATHER], "tools_in_user_message": False, "date_string": "1 Jan 2030"},
    "builtin tools": {"messages": ASK, "tools": [WEATHER], "builtin_tools": ["code_interpreter", "get_weather"]},
    "custom tools": {"messages": [USER], "custom_tools": [NESTED]},
    "documents": {"messages": [USER, ANSWER, AGAIN], "documents": [{"title": "Zoo", "text": "Löwe"}, {"title": "b"}], "enable_citations": True},
    "functions as text": {"messages": [SYSTEM, USER, ANSWER, AGAIN]} | FIRE,
    "functions as text and calls": {"messages": ASK_TEXT} | FIRE,
    "functions as text, no system": {"messages": [NON_ASCII]} | FIRE,
    "functions as text, unknown role": {"messages": [message("critic", "No.")]} | FIRE,
}
TEXTS = [("turn_marks", "three turns"), ("end_marks", "non-ASCII"), ("chatml_tools", "tool call"),
         ("type_script", "tools and system")]

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/chat_templates"
SNIPPETS = pathlib.Path(__file__).with_name("jinja_snippets.txt")
VALUES = {"a": 1, "b": 2.5, "t": True, "n": None, "s": "Hello World", "e": "", "u": "Straße ÉCOLE 東京 ǆ",
          "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"x": 1, "y": [1, 2], "items": 5, "Z": {"k": "v"}},
          "m": [{"role": "user", "n": 2, "k": {"z": "q"}}, {"role": "assistant", "n": 1}, {"role": "user", "n": 3, "on": True}],
          "lines": "one\n\ntwo\r\nthree\n", "spaced": " \t a b  c \n", "html": "<a href='x'>&\"</a>", "big": 1e16, "tiny": 1e-05}


def render(env, source, variables):
    try:
        return env.from_string(source).render(**variables)
    except Refused as error:
        return {"refused": str(error)}
    except Exception:  # pylint: disable=broad-except
        return None


DEFAULTS = {"add_generation_prompt": True, "tools": None, "documents": None, "bos_token": "<s>", "eos_token": "</s>"}


def main():
    env = environment()
    out = {"now": NOW.isoformat(), "conversations": CONVERSATIONS, "templates": {}, "texts": [], "values": VALUES, "snippets": []}
    for path in sorted(TEMPLATES.glob("*.jinja")):
        results = {}
        for name, variables in CONVERSATIONS.items():
            text = render(env, path.read_text(), DEFAULTS | variables)
            results[name] = hashlib.sha256(text.encode()).hexdigest()[:16] if isinstance(text, str) else text
            if (path.stem, name) in TEXTS:
                out["texts"].append({"template": path.stem, "conversation": name, "text": text})
        out["templates"][path.stem] = results
    for source in SNIPPETS.read_text().split("\n----\n"):
        out["snippets"].append([source, render(env, source, VALUES)])
    json.dump(out, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
