#!/usr/bin/env bash
# Install Seedbed's environment into a virtual environment: envs/install.sh [VENV]   (default: .venv)
#
# PyTorch comes first and on its own, so that the machine decides between a CPU and a CUDA build. Everything
# else then comes exactly as envs/requirements.lock says. A stamp in the venv makes a second call do nothing;
# an installation that fails leaves no stamp, so the next call goes on where it stopped.
#
# Variables:
#   PYTHON  the interpreter, 3.11 or later; default: python3 where it is 3.11 or 3.12, else one of these by name
#   TORCH   cpu or cuda; default: the build that an earlier installation chose, else cuda where nvidia-smi
#           finds a GPU, else cpu

set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="${1:-.venv}"
torch="${TORCH:-}"
# uv, because pip from 24.1 on refuses the metadata of omegaconf 2.0.6, which fairseq needs
uv_pin="uv==0.13.9"
torch_pin="$(sed -nE 's/^(torch==[^ #]+).*/\1/p' "$here/requirements.in")"
# PyPI's Linux wheel of torch is a CUDA build of several GB; the CPU build (200 MB) has an index of its own
cpu_index="https://download.pytorch.org/whl/cpu"

say() { printf 'install: %s\n' "$*"; }
fail() { { printf 'install: ERROR: %s\n' "$1"; printf '%s\n' "${@:2}"; } >&2; exit 1; }
version_of() { if command -v "$1" > /dev/null; then "$1" --version 2>&1 | sed -n 1p; else echo "no command $1"; fi; }

# Is "$1" a Python from 3.11 up to $2?
python_between() {
    "$1" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= ($2))" 2> /dev/null
}

find_python() {
    if [[ -n "${PYTHON:-}" ]]; then
        python_between "$PYTHON" "3, 99" || fail "PYTHON=$PYTHON is not Python 3.11 or later" \
            "  found: $(version_of "$PYTHON")" \
            "  hint:  make PYTHON=/path/to/python3.11"
        echo "$PYTHON"
        return
    fi
    local name
    # 3.11 and 3.12 are tested; what is newer is taken only where there is nothing else
    for name in python3 python3.12 python3.11; do
        if python_between "$name" "3, 12"; then echo "$name"; return; fi
    done
    python_between python3 "3, 99" || fail "no Python 3.11 or later was found" \
        "  found: $(version_of python3)" \
        "  hint:  install one (Debian, Ubuntu: apt install python3.11 python3.11-venv python3.11-dev; macOS: brew" \
        "         install python@3.11; or pyenv, or conda), then: make PYTHON=/path/to/python3.11"
    say "warning: $(python3 --version) is newer than those that were tested (3.11, 3.12)" >&2
    echo python3
}

# fairseq is on PyPI as source only, with C++ extensions
check_build_tools() {
    local python="$1" header compiler
    "$python" -c "import venv, ensurepip" 2> /dev/null || fail "$python cannot make virtual environments" \
        "  hint:  Debian, Ubuntu: apt install python3-venv (or python3.X-venv, of the same version)"
    header="$("$python" -c "import sysconfig; print(sysconfig.get_paths()['include'])")/Python.h"
    [[ -e "$header" ]] || fail "Python's headers are missing; fairseq is compiled on installation" \
        "  where: $header" \
        "  hint:  Debian, Ubuntu: apt install python3-dev (or python3.X-dev); Fedora: dnf install python3-devel"
    for compiler in ${CXX:-} c++ g++ clang++; do
        if command -v "$compiler" > /dev/null; then return; fi
    done
    fail "no C++ compiler was found; fairseq is compiled on installation" \
        "  hint:  Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc-c++; macOS: xcode-select --install"
}

# the folder of the venv; one that was moved or copied does not work, as its scripts name the old one
venv_folder() { (cd "$venv" && pwd -P); }

make_venv() {
    local python
    if [[ -z "${PYTHON:-}" ]] && python_between "$venv/bin/python" "3, 99" \
        && grep -qF "$(venv_folder)" "$venv/bin/activate"; then
        check_build_tools "$venv/bin/python"
        return
    fi
    # --clear empties the folder: only ever an old venv
    if [[ -e "$venv" && ! -e "$venv/pyvenv.cfg" ]]; then
        fail "$venv exists and is not a virtual environment" \
            "  hint:  remove it, or name another folder: make VENV=FOLDER"
    fi
    python="$(find_python)"
    check_build_tools "$python"
    say "virtual environment $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
}

# -qq: pip's own failures stay visible. --no-compile: what is used is compiled by its first import, in less time.
pip_install() { "$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check "$@"; }

# "2.13.0+cpu cpu" or "2.13.0 cuda": version and build of the installed torch, without its slow import; nothing
# where there is none
installed_torch() {
    "$venv/bin/python" -c '
import importlib.util, runpy
spec = importlib.util.find_spec("torch")
if spec is not None:
    version = runpy.run_path(spec.submodule_search_locations[0] + "/version.py")
    print(version["__version__"], "cuda" if version["cuda"] else "cpu")
'
}

install_torch() {
    local version build
    read -r version build < <(installed_torch) || true
    if [[ "torch==${version%+*}" == "$torch_pin" ]]; then
        if [[ "$build" == "$torch" || -z "${TORCH:-}" ]]; then return; fi
    fi
    # pip would find the version satisfied, whatever the build
    if [[ -n "$version" ]]; then "$venv/bin/python" -m pip uninstall -qq --yes torch; fi
    say "$torch_pin, $torch build"
    # One short try, so that a machine that cannot reach the index loses a few seconds only. The version with
    # +cpu makes sure that pip takes no other build meanwhile.
    if [[ "$torch" == cpu && "$(uname -s)" == Linux ]]; then
        if pip_install --timeout 10 --retries 0 --extra-index-url "$cpu_index" "$torch_pin+cpu"; then return; fi
        say "the CPU build did not come from $cpu_index: taking what pip finds (on Linux, several GB)"
    fi
    pip_install "$torch_pin"
}

# Say what was installed, as pip's configuration may offer another build than the one that was asked for.
check_torch() {
    local version build
    read -r version build < <(installed_torch) || fail "torch is not there after its installation"
    say "installed: torch $version, a build for ${build/cpu/the CPU}"
    if [[ "$build" == "$torch" ]]; then return; fi
    if [[ "$torch" == cpu ]]; then
        say "it works on the CPU too, and takes more disk"
    elif [[ -n "${TORCH:-}" ]]; then
        fail "TORCH=cuda was asked for, but pip found a CPU build" \
            "  hint:  on Linux PyPI's wheel is a CUDA build: look at pip's own configuration (pip config list)"
    else
        say "warning: there is a GPU, but this build cannot use it"
    fi
}

# It imports as a run does, and leaves the bytecode also where PYTHONDONTWRITEBYTECODE is set, as in many images: each
# run would compile PyTorch anew, which takes longer than the rest of its start.
verify() {
    env -u PYTHONDONTWRITEBYTECODE PYTHONPATH="$here/../scripts" "$venv/bin/python" - << 'END' || fail "the environment does not work" "  hint:  remove $venv, then try again"
import importlib.util
import sys

from seedbed.core import imports

imports.leave_out(imports.UNUSED)

import snakemake
import torch
from transformers import RobertaForSequenceClassification, Trainer

if importlib.util.find_spec("torchaudio"):
    sys.exit("torchaudio is installed, and can crash `import transformers`")
if torch.version.cuda and not torch.cuda.is_available():
    print("install: note: torch sees no usable GPU; if there is one, its driver is older than this build's CUDA")
END
}

stamp_text() {
    cat "$here"/{requirements.in,requirements.lock,install.sh} | cksum
    venv_folder
    echo "torch: $torch"
}

[[ -z "$torch" || "$torch" == cpu || "$torch" == cuda ]] || fail "no such build of torch" \
    "  found: TORCH=$torch" "  hint:  TORCH=cpu or TORCH=cuda"
stamp="$venv/seedbed-installed"
if [[ -z "$torch" && -e "$stamp" ]]; then
    # keep an earlier choice: a GPU that comes and goes (a login node) must not reinstall everything
    torch="$(sed -n 's/^torch: //p' "$stamp")"
elif [[ -z "$torch" ]]; then
    torch=cpu
    if nvidia-smi > /dev/null 2>&1; then torch=cuda; fi
fi
if [[ -e "$stamp" && "$(stamp_text)" == "$(< "$stamp")" ]]; then exit 0; fi

rm -f "$stamp"
SECONDS=0
make_venv
install_torch
check_torch
say "after $SECONDS s: the lock, $(grep -c == "$here/requirements.lock") packages (fairseq is compiled, about 20 s)"
pip_install "$uv_pin"
# --no-deps: the lock is complete, and fairseq's torchaudio must stay out. The lock also pins what fairseq is
# built with (setuptools, Cython). Bytecode is compiled once, here: every run imports transformers, which takes
# 4 s longer without it.
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --compile-bytecode \
    --build-constraints "$here/requirements.lock" -r "$here/requirements.lock"
verify
stamp_text > "$stamp"
say "done in $SECONDS s"
