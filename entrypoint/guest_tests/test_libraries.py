"""The libraries that test_display.py has made-up ones of, as they really are: test/python installs
them. test/guest has these tests use those of the environment data, which GUEST_PACKAGES names.
"""

from __future__ import annotations

import json
import os
import struct
import unittest

from guest_tests.host import HERE, Ran, run
from guest_tests.test_display import files

PACKAGES = os.environ.get("GUEST_PACKAGES")  # the folder in the container
PYTHON = HERE.parent / ".cache" / "python" / "bin" / "python3"
MISSING = "there are no real matplotlib, Pillow and pandas in .cache/python: test/python installs them"


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.endswith(b"IEND\xaeB`\x82"), png[:20]
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def run_with(code: str) -> Ran:
    if PACKAGES:
        return run(code, order={"path": PACKAGES})
    return run(code, python=str(PYTHON))


@unittest.skipUnless(PACKAGES or (PYTHON.parent.parent / "installed").exists(), MISSING)
@unittest.skipIf(os.environ.get("GUEST_UNDER") and not PACKAGES, "the image has no such libraries")
class Libraries(unittest.TestCase):
    def run_real(self, code: str) -> Ran:
        ran = run_with("import os; os.environ['MPLCONFIGDIR'] = '/tmp'\n" + code)
        self.assertEqual(ran.error, {}, ran.stderr)
        return ran

    def test_open_figures_are_shown_at_the_end(self) -> None:
        ran = self.run_real(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\nplt.bar([1], [2])\n"
            "print('done')"
        )
        self.assertEqual(list(files(ran)), ["figure-1.png", "figure-1-2.png"])
        for kind, data in files(ran).values():
            self.assertEqual(kind, "image/png")
            self.assertGreater(min(size(data)), 200)
        self.assertEqual((ran.stdout, ran.stderr), ("done\n", ""))

    def test_show(self) -> None:
        """plt.show() shows them there and then, each once, and doesn't warn."""
        ran = self.run_real(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint(plt.get_fignums())\n"
            "plt.plot([3])\nplt.show()"
        )
        self.assertEqual(
            (list(files(ran)), ran.stdout, ran.stderr), (["figure-1.png", "figure-1-2.png"], "[]\n", "")
        )

    def test_agg_by_the_codes_own_choice(self) -> None:
        ran = self.run_real(
            "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
            "plt.plot([1, 2])\nplt.savefig('/dev/null', format='png')"
        )
        self.assertEqual(list(files(ran)), ["figure-1.png"])

    def test_closed_and_displayed_figures(self) -> None:
        ran = self.run_real(
            "import matplotlib.pyplot as plt\nf, a = plt.subplots()\na.plot([1])\ndisplay(f)\n"
            "plt.figure()\nplt.plot([1])\nplt.close()\n"
            "g = plt.figure()\nsave_artifact('g.svg', g)\nsave_artifact('g.pdf', g)\nplt.close(g)"
        )
        found = files(ran)
        self.assertEqual(
            {name: kind for name, (kind, _) in found.items()},
            {"figure-1.png": "image/png", "g.svg": "image/svg+xml", "g.pdf": "application/pdf"},
        )
        self.assertIn(b"<svg", found["g.svg"][1])
        self.assertTrue(found["g.pdf"][1].startswith(b"%PDF-"))

    def test_a_figure_as_last_value(self) -> None:
        ran = self.run_real(
            "from matplotlib.figure import Figure\nf = Figure(figsize=(2, 1))\nf.subplots().plot([1, 2])\nf"
        )
        self.assertEqual((list(files(ran)), ran.stdout), (["figure-1.png"], ""))

    def test_figures_of_code_that_raised(self) -> None:
        ran = run_with("import matplotlib.pyplot as plt\nplt.plot([1])\n1/0")
        self.assertEqual((list(files(ran)), ran.error["type"]), (["figure-1.png"], "ZeroDivisionError"))

    def test_a_child_process_has_matplotlib_as_ever(self) -> None:
        code = (
            f"import sys; sys.path.append({PACKAGES or ''!r}); "
            "import matplotlib.pyplot as plt; plt.plot([1]); plt.savefig('/dev/null', format='png');"
            " print('drawn')"
        )
        ran = self.run_real(
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}], check=True);"
        )
        self.assertEqual((ran.stdout, ran.stderr), ("drawn\n", ""))

    def test_pictures(self) -> None:
        ran = self.run_real(
            "from PIL import Image\n"
            "for mode in ('1', 'L', 'LA', 'P', 'RGB', 'RGBA', 'CMYK', 'YCbCr', 'HSV', 'I', 'F', 'I;16', "
            "'La', 'RGBa'):\n"
            "    display(Image.new(mode, (3, 2)))\nsave_artifact('x.jpg', Image.new('RGBA', (4, 4)))\n"
            "save_artifact('x.webp', Image.new('L', (4, 4)))\nimport io\n"
            "b = io.BytesIO(); Image.new('RGB', (5, 6)).save(b, 'PNG')\nImage.open(b)"
        )
        found = list(files(ran).items())
        self.assertEqual(len(found), 17)
        for name, (kind, data) in found[:14]:
            self.assertEqual((kind, size(data)), ("image/png", (3, 2)), name)
        self.assertEqual([kind for _, (kind, _) in found[14:]], ["image/jpeg", "image/webp", "image/png"])
        self.assertTrue(found[14][1][1].startswith(b"\xff\xd8\xff"))
        self.assertEqual(size(found[16][1][1]), (5, 6))

    def test_tables(self) -> None:
        ran = self.run_real(
            "import pandas as pd\ndf = pd.DataFrame({f'column{n}': range(3) for n in range(20)})\n"
            "display(df['column1'])\nsave_artifact('t.csv', df[['column0']])\n"
            "save_artifact('t.json', df[['column0']])\ndf"
        )
        self.assertTrue(
            ran.stdout.startswith("0    0\n1    1\n2    2\nName: column1, dtype: int64\n"), ran.stdout
        )
        header = ran.stdout.splitlines()[4]
        self.assertEqual(
            header.split(), [f"column{n}" for n in range(20)]
        )  # none is left out for the width of a terminal
        found = files(ran)
        self.assertEqual(found["t.csv"][1], b",column0\n0,0\n1,1\n2,2\n")
        self.assertEqual(json.loads(found["t.json"][1]), [{"column0": 0}, {"column0": 1}, {"column0": 2}])

    def test_large_tables(self) -> None:
        ran = self.run_real("import pandas as pd\npd.DataFrame({f'c{n}': range(5000) for n in range(100)})")
        self.assertLess(len(ran.stdout.splitlines()), 70)
        self.assertIn("[5000 rows x 100 columns]", ran.stdout)

    def test_frames_of_the_libraries_are_one_line(self) -> None:
        ran = run_with("import pandas as pd\npd.DataFrame({'a': [1]})['b']")
        self.assertRegex(
            ran.error["traceback"],
            r"\[\d frames of pandas, raised in pandas/core/indexes/base.py, line \d+, in"
            r" get_loc\]\nKeyError: 'b'",
        )
        self.assertLess(len(ran.error["traceback"].splitlines()), 20)

    def test_installed_are_named(self) -> None:
        ran = run_with("import seaborn")
        for name in ("matplotlib", "numpy", "pandas", "PIL"):
            self.assertIn(name, ran.error["message"])
