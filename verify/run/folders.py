"""A folder of a test's own, with programs in it. For tests."""

import pathlib
import stat
import sys
import tempfile
import unittest


class Folders(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.place = pathlib.Path(holder.name)

    def script(self, name, text):
        """An executable Python program."""
        path = self.place / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)
