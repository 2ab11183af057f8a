# SPDX-License-Identifier: Apache-2.0
"""A target daemon alone, for tests with foreign initiators: LUNs are made, initiators let in, URLs of libiscsi given."""
import os
import sys

import boxes as b

initiator = "iqn.2026-11.io.vjbod.test:foreign"


class TargetTest(b.BoxTest):
    def setUp(self):
        self.boxes = b.Boxes(**self.options)
        self.addCleanup(self.boxes.close)
        try:
            self.boxes.start_target()
        except BaseException:
            sys.stderr.write(self.boxes.logs())
            raise

    def secret(self, text):
        """A file with the secret; secrets are never arguments."""
        path = self.boxes.dir / f"secret-{text}"
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def lun(self, name="lun1", size="64M", *more):
        self.boxes.cli("target", "lun", "create", name, "--pool", "tank", "--size", size, *more)

    def let_in(self, iqn=initiator, *luns, chap=None, mutual=None):
        """`chap` and `mutual` are pairs of user and secret."""
        options = []
        if chap:
            options += ["--chap-user", chap[0], "--chap-secret-file", self.secret(chap[1])]
        if mutual:
            options += ["--mutual-user", mutual[0], "--mutual-secret-file", self.secret(mutual[1])]
        self.boxes.cli("target", "initiator", "add", iqn, *options)
        for lun in luns:
            self.boxes.cli("target", "initiator", "allow", iqn, lun)

    def portal(self):
        return f"127.0.0.1:{self.boxes.ports['127.0.0.1']}"

    def libiscsi(self, program, *arguments, iqn=initiator, check=True, timeout=60, **environment):
        return b.run(program, "-i", iqn, *arguments, check=check, timeout=timeout, env={**os.environ, **environment})
