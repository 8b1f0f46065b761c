#!/usr/bin/env bash
# Make sure that there is a Slurm to test profiles/slurm with: envs/slurm.sh
#
# The tests start a cluster of their own on this host (tests/slurm/cluster.py). That takes Slurm's daemons,
# munge and a database for the accounting, and root, as the daemons start jobs in other users' names. What is
# missing is installed where this is Debian, Ubuntu or another with their packages.

set -euo pipefail

packages=(slurmctld slurmd slurm-client slurmdbd munge mariadb-server)
commands=(slurmctld slurmd sbatch sacct slurmdbd munged mariadbd mariadb-install-db)
# daemons lie where not every user looks
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { printf 'slurm: %s\n' "$*"; }
fail() { { printf 'slurm: ERROR: %s\n' "$1"; printf '%s\n' "${@:2}"; } >&2; exit 1; }
missing() {
    local name
    for name in "${commands[@]}"; do command -v "$name" > /dev/null || printf '%s ' "$name"; done
}

# Debian starts a package's daemons on installation, unless policy-rc.d says no: there is nothing yet that
# they could work with, and the tests start their own.
install_debian() {
    local policy=/usr/sbin/policy-rc.d
    if [[ ! -e "$policy" ]]; then
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
    fi
    say "installing ${packages[*]}"
    apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}" > /dev/null
}

lacking="$(missing)"
if [[ "$(uname -s)" != Linux || "$(id -u)" != 0 ]]; then
    fail "the tests of profiles/slurm start a cluster of their own, which takes root on Linux" \
        "  found: user $(id -un) on $(uname -s); missing commands: ${lacking:-none}" \
        "  hint:  run them in a container: docker run --rm -it --privileged -v \"\$PWD:/seedbed\" -w /seedbed debian:12" \
        "         and there: apt update && apt install -y make git python3-venv python3-dev g++" \
        "         make VENV=/venv test-slurm"
fi
if [[ -z "$lacking" ]]; then exit 0; fi
if command -v apt-get > /dev/null; then
    install_debian || fail "apt-get could not install ${packages[*]}" "  hint:  its own message stands above"
    lacking="$(missing)"
fi
[[ -z "$lacking" ]] || fail "Slurm is missing, and is installed by itself only where there is apt-get" \
    "  found: no $lacking" \
    "  hint:  install Slurm's controller, node daemon, clients and database daemon, munge and MariaDB"
