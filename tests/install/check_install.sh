#!/usr/bin/env bash
# Installs a build, builds a project outside the tree against it, and unpacks and runs what cpack makes.
# check_install.sh CMAKE BUILD_FOLDER
set -euo pipefail
cmake=$1 build=$2
here=$(cd "$(dirname "$0")" && pwd)
model=$here/../golden/tiny_model.gguf
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
expect() {  # expect WHAT FOUND EXPECTED
  [ "$2" == "$3" ] || { printf '%s: found\n%s\nexpected\n%s\n' "$1" "$2" "$3" >&2; exit 1; }
}
answer() { OMP_NUM_THREADS=1 "$1" generate --model "$model" --set backbone.chat_template=plain --drafter none \
  --max-tokens 24 --threads 1 --prompt 'Once upon a time' 2>/dev/null; }
wanted=$(cd "$scratch" && answer "$build/medusa")
cd "$scratch"

echo "== cmake --install"
"$cmake" --install "$build" --prefix "$scratch/prefix" >install.log
expect "the installed program" "$(answer "$scratch/prefix/bin/medusa")" "$wanted"

echo "== a project outside the tree"
cp -r "$here/project" .
"$cmake" -S project -B built -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$scratch/prefix" >configure.log
"$cmake" --build built >build.log
expect "a program over the installed library" "$(OMP_NUM_THREADS=1 built/story "$model" made 2>heads.txt)" "$wanted"
expect "the heads that it trained" "$(cat heads.txt)" "2 heads"

echo "== LibTorch that is not there is refused"
if "$cmake" -S project -B refused -DCMAKE_PREFIX_PATH="$scratch/prefix" -DMEDUSA_TORCH_DIR="$scratch/none" >refused.log 2>&1; then
  echo "MEDUSA_TORCH_DIR without LibTorch was taken" >&2
  exit 1
fi
tr -s ' \n' ' ' <refused.log | grep -q "MEDUSA_TORCH_DIR is '$scratch/none', found no lib/libtorch_cpu.so there, expected LibTorch"

echo "== cpack"
(cd "$build" && "${cmake%cmake}cpack" -B "$scratch/packed" >"$scratch/pack.log")
mkdir tgz deb
tar -xzf packed/*.tar.gz -C tgz --strip-components=1
dpkg-deb -x packed/*.deb deb
expect "the program of the TGZ" "$(answer "$scratch/tgz/bin/medusa")" "$wanted"
expect "the program of the DEB" "$(answer "$scratch/deb/usr/bin/medusa")" "$wanted"
dpkg-deb -f packed/*.deb Depends | tr ',' '\n' | tr -d ' ' >depends
[ "$(wc -l <depends)" -ge 5 ]
while read -r package; do
  dpkg-query -W -f='${Status}' "$package" | grep -q 'ok installed' || { echo "$package: not a package of this machine" >&2; exit 1; }
done <depends

echo "== every library of the program belongs to a package that the DEB depends on"
readelf -d "$scratch/deb/usr/bin/medusa-core" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >needed
while read -r library; do
  case $library in libtorch* | libc10* | libtvm_ffi*) continue ;; esac  # LibTorch and xgrammar are wheels
  path=$(realpath "$(ldconfig -p | sed -n "s|^[[:space:]]*$library .*=> ||p" | head -n 1)")
  package=$( (dpkg-query -S "$path" || dpkg-query -S "${path#/usr}") 2>/dev/null | head -n 1 | cut -d: -f1)  # /lib is /usr/lib
  grep -qx "$package" depends || { echo "$library: of package '$package', which the DEB does not depend on" >&2; exit 1; }
done <needed
echo "installed, linked and packed"
