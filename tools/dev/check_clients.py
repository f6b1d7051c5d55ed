#!/usr/bin/env python3
"""Asks `medusa serve` over the tests' tiny model with the clients that people use, unchanged.

tools/dev/check_clients.sh installs them and runs this. All of it stays on this machine.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf_copy
from medusa_server import MEDUSA, MedusaServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/golden/tiny_model.gguf"
# The tiny model's own template takes no tools, and it knows so few words that longer ones leave no room for an answer.
TEMPLATE = (
    "{% if tools %}{% for t in tools %}{{ t.function.name }} {% endfor %}{% endif %}"
    "{% for m in messages %}{{ m.content }}\n"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments|tojson }}}</tool_call>{% endfor %}{% endif %}{% endfor %}")
SERVE = ["--threads", "1", "--context", "512", "--batch", "1", "--max-waiting", "16"]
CHECKS = ["check_openai_client.py", "check_anthropic_client.py", "check_wrapping_clients.py", "check_metrics.py",
          "check_schemas.py"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--medusa", default=MEDUSA)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder)
        # No client has a reason to ask anybody else, or to read what its user has set up for it.
        alone = {"PATH": os.environ["PATH"], "HOME": folder, "LLM_USER_PATH": folder, "HF_HUB_OFFLINE": "1",
                 "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
                 "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        gguf_copy.write_copy(TINY, "BF16", own / "tiny.gguf", template=TEMPLATE)
        with MedusaServer([own / "tiny.gguf", *SERVE], options.medusa, own) as served:
            for check in CHECKS:
                subprocess.run([sys.executable, ROOT / "tools/dev/clients" / check, served.url], env=alone, cwd=folder,
                               check=True, timeout=300)


if __name__ == "__main__":
    main()
