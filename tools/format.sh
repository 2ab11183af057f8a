#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ source, or with --check says which are not formatted. Usage: format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run --Werror)
git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format-14 "${mode[@]}" --style=file
