# SPDX-License-Identifier: Apache-2.0
"""What the lab needs and this machine has not."""
import shutil


class Missing(Exception):
    """Says what is missing and how to get it: a skip on a person's machine, a failure in CI."""


def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Missing(f"missing: {', '.join(missing)}; tools/packages.sh test vm installs them")
