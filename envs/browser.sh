#!/usr/bin/env bash
# Make sure that there is a browser to test the report with: envs/browser.sh [VENV]   (default: .venv)
#
# A Chromium or Chrome on the PATH, or one that Playwright installed before, is taken as it is. Else Debian's is
# installed, where this user may do that; else Playwright's own, which it downloads into its cache.

set -euo pipefail

venv="${1:-.venv}"

say() { printf 'browser: %s\n' "$*"; }

on_the_path() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# Playwright's own starts only with its libraries; and for root only without a sandbox.
playwright_works() {
    "$venv/bin/python" - 2> /dev/null << 'END'
import os

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    playwright.chromium.launch(chromium_sandbox=os.getuid() != 0).close()
END
}

there() { on_the_path > /dev/null || playwright_works; }

may_use_apt() { [[ "$(id -u)" == 0 ]] && grep -qsx 'ID=debian' /etc/os-release && command -v apt-get > /dev/null; }

install_debian() {
    say "installing Debian's chromium"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium > /dev/null
}

install_playwright() {
    say "installing Playwright's chromium"
    "$venv/bin/playwright" install chromium-headless-shell
}

if there; then exit 0; fi
if may_use_apt && install_debian && there; then exit 0; fi
if install_playwright && there; then exit 0; fi
{
    echo "browser: ERROR: no browser to test the report with"
    echo "  found: neither chromium, chromium-browser nor google-chrome on the PATH; Playwright's own does not start"
    echo "  hint:  install Chromium (Debian: apt install chromium; Fedora: dnf install chromium), or, with a network:"
    echo "         $venv/bin/playwright install --with-deps chromium-headless-shell"
} >&2
exit 1
