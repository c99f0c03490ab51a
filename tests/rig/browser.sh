#!/usr/bin/env bash
# A browser for tests/browser: Debian's chromium, where there is none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

lock browser
command -v "${SANDBOX_TEST_CHROMIUM:-chromium}" > /dev/null || apt_install chromium
say "$(command -v "${SANDBOX_TEST_CHROMIUM:-chromium}")"
