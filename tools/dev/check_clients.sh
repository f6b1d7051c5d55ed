#!/usr/bin/env bash
# Installs the clients of other projects into .deps/clients, and asks the built program with each of them.
# Arguments go to tools/dev/check_clients.py. The versions are pinned, with their SHA-256, in tools/dev/clients/wheels.txt, which
# tools/dev/pin_wheels.py writes.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${MEDUSA_CLIENTS:-.deps/clients}
[ -x "$folder/bin/pip" ] || /usr/bin/python3 -m venv "$folder"
if ! cmp -s tools/dev/clients/wheels.txt "$folder/installed.txt"; then
  echo "clients: installing into $folder"
  "$folder/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r tools/dev/clients/wheels.txt
  cp tools/dev/clients/wheels.txt "$folder/installed.txt"
fi
exec "$folder/bin/python" tools/dev/check_clients.py "$@"
