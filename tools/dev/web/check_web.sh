#!/usr/bin/env bash
# Uses the page of the built program in headless Chromium, and asks three servers behind nginx: installs what both need.
# tools/dev/web/check_web.sh [FOLDER]    FOLDER keeps pictures of the page
set -euo pipefail
cd "$(dirname "$0")/../../.."
missing=()
for package in chromium nginx openssl curl; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" -eq 0 ] || { echo "web: not root; install these packages: ${missing[*]}" >&2; exit 1; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
folder=.deps/web
[ -x "$folder/bin/pip" ] || /usr/bin/python3 -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r tools/dev/clients/wheels-web.txt

port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
model=$(tools/get_demo_model.sh | tail -n 1)
build/release/medusa serve "$model" --port "$port" >/dev/null &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT
for _ in $(seq 200); do
  curl -sf --noproxy '*' -o /dev/null "http://127.0.0.1:$port/health" && break
  kill -0 "$server" || exit 1
  sleep .3
done
"$folder/bin/python" tools/dev/web/check_page.py "http://127.0.0.1:$port/" ${1:+--pictures "$1"}
tools/dev/web/check_scale_out.py
