"""How the guest's modules are found."""

from __future__ import annotations

import json
import unittest

from guest import boot
from guest_tests.host import sources


class Sources(unittest.TestCase):
    def test_every_module_has_its_own_file_name_and_source(self) -> None:
        finder = boot.Sources(json.dumps(sources()).encode())
        for name, text in sources().items():
            full = boot.PACKAGE if name == "__init__" else f"{boot.PACKAGE}.{name}"
            self.assertEqual(finder.get_code(full).co_filename, boot.file_name(name))
            self.assertEqual(finder.get_source(full), text)

    def test_no_other_module_is_found(self) -> None:
        finder = boot.Sources(b'{"names": ""}')
        for name in ("names", "guest.nothing", "guestnames"):
            self.assertIsNone(finder.find_spec(name))
            self.assertIsNone(finder.get_source(name))
            self.assertRaises(ImportError, finder.get_code, name)


if __name__ == "__main__":
    unittest.main()
