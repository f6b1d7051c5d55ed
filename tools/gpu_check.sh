#!/usr/bin/env bash
# Builds with our CUDA kernels on a machine with an NVIDIA GPU, runs every test of it and the benchmarks, and prints one
# table; all in 8 minutes on 16 cores, with nothing fetched. What is missing there is brought along: the folder that
# --pack makes.
#
#   tools/gpu_check.sh                    all of it; what the parts printed is kept in build/cuda/gpu_check/
#   tools/gpu_check.sh --only tests,speed some parts: tests, speed, profile, memcheck; the build is no part
#   tools/gpu_check.sh --out DIR          keeps logs, a summary (gpu_check.json) and stripped binaries there instead
#   tools/gpu_check.sh --no-build         with the binaries that are in DIR, or else in build/cuda
#   tools/gpu_check.sh --pack             where the packages of tools/setup.sh are installed: collects them in
#                                         .gpu_carry/
#   tools/gpu_check.sh --without-gpu      the same where there is no GPU, to try this script: tests of one skip
#   tools/gpu_check.sh --minutes 30       time for all parts together, for machines with fewer cores
#
# Needs python3 with torch 2.11.0, its CUDA wheels and, to build, nvcc 13, CMake and ninja. Exit status: 0, all passed; 1, something
# did not; 2, it could not begin.
set -euo pipefail
cd "$(dirname "$0")/.."

carry=.gpu_carry
build=build/cuda
logs=$build/gpu_check
packages=(libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libcli11-dev libssl-dev libpcre2-dev libutf8proc-dev
          libhdf5-dev libaec-dev zlib1g-dev libedit-dev libgtest-dev)
libraries=(libyaml-cpp.a libcrypto.a libpcre2-8.a libutf8proc.a libhdf5_serial.a libsz.a libaec.a libz.a
           libedit.a libbsd.a libmd.a libtinfo.a libgtest.a libgtest_main.a libfmt.so.9)  # fmt has no static one
modules=(yaml-cpp nlohmann_json fmt CLI11 libcrypto libpcre2-8 libutf8proc hdf5-serial libedit gtest)  # to pkg-config

refuse() {
  echo "gpu_check: $1" >&2
  exit 2
}

# Headers of the packages side by side, as cmake/Packages.cmake reads them.
pack() {
  local package file
  command -v dpkg >/dev/null || refuse "--pack: no dpkg, expected a Debian machine with the packages of tools/setup.sh; run it on one"
  for package in "${packages[@]}" libboost1.81-dev; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      refuse "--pack: no package '$package', expected those of tools/setup.sh to be installed; run that first"
  done
  rm -rf "$carry"
  mkdir -p "$carry/include" "$carry/lib"
  while read -r file; do
    [ -f "$file" ] || continue
    case $file in
      /usr/include/*.h|/usr/include/*.hpp) ;;
      *) continue ;;
    esac
    local name=${file#/usr/include/}
    name=${name#*-linux-gnu/}
    install -D -m 644 "$file" "$carry/include/${name#hdf5/serial/}"
  done < <(dpkg -L "${packages[@]}" | sort -u)
  # Of Boost's 130 MB what the server includes.
  while read -r file; do
    install -D -m 644 "$file" "$carry/include/${file#/usr/include/}"
  done < <(grep -h '#include <boost' server/*.h server/*.cpp tests/server/* | sort -u |
    g++ -x c++ -std=c++20 -M - | tr ' \\' '\n\n' | grep '^/usr/include/boost/' | sort -u)
  local from
  from=/usr/lib/$(gcc -print-multiarch)
  for file in "${libraries[@]}"; do install -m 644 "$from/$file" "$carry/lib/$file"; done
  dpkg-query -W "${packages[@]}" > "$carry/packages.txt"
  chmod -R u+w "$carry"
  echo "$carry: $(du -sm "$carry" | cut -f1) MB, $(wc -l < "$carry/packages.txt") packages; bring it along"
}

with_gpu=1
with_build=1
minutes=8
parts=(tests speed profile memcheck)
only=" ${parts[*]} "
out=
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack; exit 0 ;;
    --without-gpu) with_gpu=0 ;;
    --no-build) with_build=0 ;;
    --only)
      only=" ${2:-} "
      only=${only//,/ }
      for each in $only; do
        [[ " ${parts[*]} " == *" $each "* ]] || refuse "--only '$each', expected some of ${parts[*]} with commas between them; correct it"
      done
      [ -n "${only// /}" ] || refuse "--only names no part, expected some of ${parts[*]}; name one"
      shift
      ;;
    --out)
      out=${2:-}
      [ -n "$out" ] || refuse "--out names no folder, expected one; give one"
      shift
      ;;
    --minutes)
      minutes=${2:-}
      [[ $minutes =~ ^[1-9][0-9]*$ ]] || refuse "--minutes '$minutes', expected a whole number of minutes; give one"
      shift
      ;;
    *) refuse "'$1' is no option, expected --pack, --only, --out, --no-build, --without-gpu or --minutes N; leave it out" ;;
  esac
  shift
done
if [ -n "$out" ]; then
  # What lies in the folder is replaced, so nobody else's files may.
  if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -e "$out/gpu_check.json" ] && [ ! -e "$out/device_tests.txt" ]; then
    refuse "--out $out: found files of something else, expected a new or empty folder, or one of an earlier run; name another one"
  fi
  mkdir -p "$out" 2>/dev/null || refuse "--out $out: cannot be made, expected a name for a folder; name another one"
  [ -e "$out/gpu_check.json" ] || echo '{}' > "$out/gpu_check.json"
  logs=$out/logs
fi
wanted() { [[ $only == *" $1 "* ]]; }
started=$SECONDS
deadline=$((SECONDS + 60 * minutes))

# --- What is here ----------------------------------------------------------------------------------------------------

find_python() {
  local each
  for each in .deps/venv/bin/python "$(command -v python3 || true)"; do
    if [ -x "$each" ] && [ "$("$each" -c 'import importlib.metadata as m; print(m.version("torch").split("+")[0])' 2>/dev/null)" = 2.11.0 ]; then
      echo "$each"
      return
    fi
  done
}
python=$(find_python)
[ -n "$python" ] || refuse "found no python3 with torch 2.11.0, expected LibTorch as that wheel; run tools/setup.sh, or install torch==2.11.0"
# Where the binaries are, and the list of those that test a GPU.
bin=$build
if [ "$with_build" = 1 ]; then
  for tool in cmake ninja g++; do
    command -v "$tool" >/dev/null || refuse "found no $tool, expected it to build with; run tools/setup.sh, or install it"
  done
else
  if [ -n "$out" ] && [ -f "$out/device_tests.txt" ]; then bin=$out; fi
  [ -f "$bin/device_tests.txt" ] || refuse "--no-build: found no binaries in ${out:+$out or }$build, expected those of an earlier run; leave --no-build out"
fi

gpu=
architecture=90
if [ "$with_gpu" = 1 ]; then
  # "90 NVIDIA H100 80GB HBM3"
  gpu=$("$python" -c 'import torch
if torch.cuda.is_available(): print("%d%d" % torch.cuda.get_device_capability(), torch.cuda.get_device_name())' 2>/dev/null || true)
  [ -n "$gpu" ] || refuse "found no usable NVIDIA GPU (torch.cuda.is_available() of $python), expected one with its driver; run this on such a machine, or with --without-gpu to try the script"
  architecture=${gpu%% *}
  gpu=${gpu#* }
fi

find_nvcc() {
  local wheels each
  wheels=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')/../nvidia
  for each in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$wheels/cu13/bin/nvcc"; do
    if [ -x "$each" ]; then
      echo "$each"
      return
    fi
  done
}
if [ "$with_build" = 1 ]; then
  nvcc=$(find_nvcc)
  [ -n "$nvcc" ] || refuse "found no nvcc, expected CUDA's compiler in PATH or /usr/local/cuda/bin; install the CUDA toolkit 13.0"

  settings=(-DPython3_EXECUTABLE="$(realpath -s "$python")" -DCMAKE_CUDA_COMPILER="$nvcc" -DMEDUSA_CUDA_ARCHITECTURES="$architecture")
  if command -v pkg-config >/dev/null && pkg-config --exists "${modules[@]}"; then
    where="those installed"
    settings+=(-DMEDUSA_PACKAGES=)
  elif [ -f "$carry/packages.txt" ]; then
    where="carried in $carry/"
    settings+=(-DMEDUSA_PACKAGES="$PWD/$carry")
  else
    refuse "found neither the packages of tools/setup.sh nor $carry/, expected one of them; run tools/setup.sh, or tools/gpu_check.sh --pack where they are installed and bring $carry/ along"
  fi
  built="packages: $where        nvcc: $nvcc"
else
  built="binaries: $bin"
fi
echo "gpu: ${gpu:-left out}        $built        python: $python"

# --- Parts -----------------------------------------------------------------------------------------------------------

rm -rf "$logs"
mkdir -p "$logs"
tests_of_a_gpu='*cuda*:*Cuda*:-*mulat*'  # those on emulated kernels have cuda in their names, too
export OMP_NUM_THREADS=1 GTEST_COLOR=no  # threads of several binaries beside each other would spin
unset NVIDIA_TF32_OVERRIDE TORCH_ALLOW_TF32_CUBLAS_OVERRIDE  # they change what LibTorch's GEMMs give

# part NAME SECONDS COMMAND…: runs it so long at most (of 8 minutes for all; more where there are more) and while all
# parts together have time; its output goes to NAME.log, the exit status and the seconds that it took to NAME.status.
part() {
  local name=$1 limit=$2 began=$SECONDS status=0 left=$((deadline - SECONDS))
  shift 2
  if [ "$minutes" -gt 8 ]; then limit=$((limit * minutes / 8)); fi
  if [ "$limit" -gt "$left" ]; then limit=$left; fi
  if [ "$limit" -le 0 ]; then
    echo "124 0" > "$logs/$name.status"
    echo "== $name: no time left"
    return
  fi
  { timeout --kill-after=5 "$limit" "$@"; } > "$logs/$name.log" 2>&1 || status=$?  # the shell's word on a crash, too
  echo "$status $((SECONDS - began))" > "$logs/$name.status"
  echo "== $name: status $status, $((SECONDS - began)) s"
}

# The part could not be run, and why.
leave_out() { echo "$2" > "$logs/$1.left_out"; }

# At most three beside each other: they share one GPU.
in_turn() {
  while [ "$(jobs -rp | wc -l)" -ge 3 ]; do wait -n || true; done
  part "$@" &
}

# ended NAME: it ran and its status is 0.
ended() { [[ -f $logs/$1.status && $(cat "$logs/$1.status") == "0 "* ]]; }

shown=()  # the parts of the table
if [ "$with_build" = 1 ]; then
  shown+=(configure build)
  part configure 60 cmake --preset cuda "${settings[@]}"
  if [ "$with_gpu" = 1 ] && ended configure && ! grep -q 'CUDA: libraries and headers' "$logs/configure.log"; then
    cat "$logs/configure.log"
    refuse "CMake found no CUDA libraries with headers (its line 'CUDA:'), expected the CUDA wheels of torch; install them"
  fi
  if ended configure; then
    part build 290 cmake --build --preset cuda -- -k 0  # what else can be built is
    ended build || grep -E '^FAILED|error' "$logs/build.log" | head -n 40 || true
  else
    leave_out build "not begun"
    cat "$logs/configure.log"
  fi
fi

tests=()
if [ -f "$bin/device_tests.txt" ]; then mapfile -t tests < "$bin/device_tests.txt"; fi  # tests/CMakeLists.txt writes it
if [ "$with_build" = 1 ] && [ -n "$out" ] && ended build; then
  for each in medusa medusa-core gpu_speed "${tests[@]}"; do strip -o "$out/$each" "$build/$each"; done
  cp "$build/device_tests.txt" "$out/"
fi

# What answers most comes first: whether kernels are right, then how fast they are.
if wanted tests; then
  for test in "${tests[@]}"; do
    shown+=("$test")
    if [ -x "$bin/$test" ]; then
      in_turn "$test" 90 "$bin/$test" --gtest_filter="$tests_of_a_gpu"
    else
      leave_out "$test" "not built"
    fi
  done
  wait
fi

speed=(--device cuda --only gemms,steps,medusa,work --contexts 512 --samples 3)
device=cuda
shapes=(smollm2-135m llama-2-7b llama-3-8b)
if [ "$with_gpu" = 0 ]; then
  speed=(--device cpu)
  device=cpu
  shapes=(tiny)
fi
if wanted speed; then
  for shape in "${shapes[@]}"; do
    shown+=("speed-$shape")
    if [ -x "$bin/gpu_speed" ]; then
      part "speed-$shape" 75 env -u OMP_NUM_THREADS "$bin/gpu_speed" "${speed[@]}" --shape "$shape"
      cat "$logs/speed-$shape.log"
    else
      leave_out "speed-$shape" "not built"
    fi
  done
fi

# The demo's model where it is; else the tests' tiny one, whose times say little but whose run says that it works.
model=.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -f "$model" ]; then model=tests/golden/tiny_model.gguf; fi
if wanted profile; then
  shown+=(profile)
  if [ -x "$bin/medusa" ]; then
    printf 'run: %s\nbackbone:\n  model: %s\n  chat_template: plain\n' "$(realpath "$logs")/run" "$(realpath "$model")" > "$logs/run.yaml"
    part profile 40 env -u OMP_NUM_THREADS "$bin/medusa" profile --config "$logs/run.yaml" --device $device \
      --dtype bfloat16 --rows 1,16,64 --repeat 8 --contexts 256
    cat "$logs/profile.log"
  else
    leave_out profile "not built"
  fi
fi

if wanted memcheck; then
  shown+=(memcheck)
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
  if [ "$with_gpu" = 0 ]; then
    leave_out memcheck "no GPU"
  elif [ -z "$sanitizer" ]; then
    leave_out memcheck "no compute-sanitizer"
  elif [ ! -x "$bin/cuda_tests" ]; then
    leave_out memcheck "not built"
  else
    part memcheck 75 "$sanitizer" --tool memcheck --error-exitcode 9 "$bin/cuda_tests" --gtest_filter="$tests_of_a_gpu"
  fi
fi

# --- The table -------------------------------------------------------------------------------------------------------

# lines NAME WORD: how many tests ended so; each prints one line with its time.
lines() { grep -c "^\[ *$2 *\] .* ms)\$" "$logs/$1.log" || true; }

bad=0
passed_tests=0
printf '\n%-22s %-12s %8s %8s %8s %8s\n' part result seconds passed failed skipped
summary=()  # of JSON
for name in "${shown[@]}"; do
  status=- seconds=-
  if [ -f "$logs/$name.left_out" ]; then
    result=$(cat "$logs/$name.left_out")
    if [[ $result == "not "* ]]; then bad=1; fi
  else
    read -r status seconds < "$logs/$name.status"
    case $status in
      0) result=ok ;;
      124|137) result="cut off"; bad=1 ;;
      *) result="failed ($status)"; bad=1 ;;
    esac
  fi
  numbers=()
  if [[ $name == *_tests && -f $logs/$name.log ]]; then
    numbers=("$(lines "$name" OK)" "$(lines "$name" FAILED)" "$(lines "$name" SKIPPED)")
    passed_tests=$((passed_tests + numbers[0]))
  fi
  printf '%-22s %-12s %8s %8s %8s %8s\n' "$name" "$result" "$seconds" "${numbers[@]}"
  counts=
  if [ ${#numbers[@]} = 3 ]; then counts=$(printf ', "passed": %d, "failed": %d, "skipped": %d' "${numbers[@]}"); fi
  summary+=("$(printf '{"part": "%s", "result": "%s", "seconds": %s%s}' "$name" "$result" "${seconds/-/null}" "$counts")")
done
printf '%-22s %-12s %8s\n' all "$([ $bad = 0 ] && echo ok || echo 'not ok')" $((SECONDS - started))
if [ -n "$out" ]; then
  (IFS=,; printf '{"gpu": "%s", "date": "%s", "commit": "%s", "parts": [%s]}\n' "$gpu" "$(date -u +%FT%TZ)" \
    "$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)" "${summary[*]}") > "$out/gpu_check.json"
fi
for test in "${tests[@]}"; do
  grep "^\[ *FAILED *\] .* ms)\$" "$logs/$test.log" 2>/dev/null | sed "s/^/$test: /" || true
done
if wanted tests && [ "$with_gpu" = 1 ] && [ "$passed_tests" = 0 ]; then
  echo "gpu_check: no test ran on the GPU" >&2
  bad=1
fi
echo "what each part printed: $logs/"
exit $bad
