"""Renders conversations with jinja2 for tests/data/chat_template_test.cpp.

    python3 tools/dev/make_chat_template_golden.py > tests/golden/chat_templates.json

The environment is set up as transformers does (trim_blocks, lstrip_blocks, loop controls). The templates are those files of
tests/golden/chat_templates that a built-in template renders exactly, and, here and as short as they can be, what their families
publish. tools/dev/check_published.py compares on published files.
"""

import json
import pathlib
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

INLINE = {
    "llama-2": "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set sys = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set sys = false %}{% endif %}{% for m in rest %}"
    "{% if loop.index0 == 0 and sys != false %}{% set text = '<<SYS>>\\n' + sys + '\\n<</SYS>>\\n\\n' + m['content'] %}"
    "{% else %}{% set text = m['content'] %}{% endif %}{% if m['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}{% else %}{{ ' ' + text.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}",
    "zephyr": "{% for m in messages %}\n{{ '<|' + m['role'] + '|>\\n' + m['content'] + eos_token }}\n"
    "{# <|user|> <|system|> <|assistant|> #}{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n"
    "{% endif %}\n{% endfor %}",
    "vicuna": "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + ' ' }}{% set rest = messages[1:] %}"
    "{% else %}{{ 'A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
    "detailed, and polite answers to the user\\'s questions. ' }}{% set rest = messages %}{% endif %}{% for m in rest %}"
    "{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'] + ' ' }}{% else %}{{ 'ASSISTANT: ' + m['content'] + eos_token }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}",
    "mistral-v1": "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
}
# The files of the folder that one of the built-in templates renders exactly.
FILES = ["chatml_tools", "header_turns", "header_today", "brackets"]
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/chat_templates"
USER, SYSTEM, ANSWER = ({"role": role, "content": text} for role, text in
                        [("user", "What is gravity?"), ("system", "Be brief."), ("assistant", "A force.")])
CONVERSATIONS = [[USER], [SYSTEM, USER], [USER, ANSWER, {"role": "user", "content": "Are you sure?"}],
                 [SYSTEM, USER, ANSWER, {"role": "user", "content": " Are you sure? "}]]


def fail(message):
    raise jinja2.TemplateError(message)


def renders(source):
    """Of each conversation: its messages and the text, None where the template refuses."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.globals["raise_exception"] = fail
    env.globals["strftime_now"] = lambda form: "26 Jul 2024"  # the day that the built-in templates always write
    bos = "<|begin_of_text|>" if "start_header_id" in source else "<s>"
    eos = "<|im_end|>" if "<|im_start|>" in source else "</s>"
    for messages in CONVERSATIONS:
        try:
            text = env.from_string(source).render(messages=messages, add_generation_prompt=True, bos_token=bos, eos_token=eos)
        except jinja2.TemplateError as error:
            text = None
            print(f"{source[:60]!r}: {error}", file=sys.stderr)
        yield {"messages": messages, "text": text}


def main():
    golden = [{"name": name, "file": True, "renders": list(renders((FOLDER / f"{name}.jinja").read_text()))} for name in FILES]
    golden += [{"name": name, "template": source, "renders": list(renders(source))} for name, source in INLINE.items()]
    json.dump(golden, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
