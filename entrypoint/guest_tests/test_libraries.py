"""The libraries that test_display.py has made-up ones of, as they really are: test/python installs
them. test/guest has these tests use those of the environment data, which GUEST_PACKAGES names.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import unittest

from guest_tests.host import HERE, Ran, run
from guest_tests.test_display import files
from guest_tests.test_sandbox import Sandbox, state

PACKAGES = os.environ.get("GUEST_PACKAGES")  # the folder in the container
PYTHON = HERE.parent / ".cache" / "python" / "bin" / "python3"
MISSING = "there are no real matplotlib, Pillow, pandas and more in .cache/python: test/python installs them"


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.endswith(b"IEND\xaeB`\x82"), png[:20]
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def run_with(code: str) -> Ran:
    if PACKAGES:
        return run(code, order={"path": PACKAGES})
    return run(code, python=str(PYTHON))


def sandbox() -> Sandbox:
    return Sandbox(order={"path": PACKAGES}) if PACKAGES else Sandbox(python=str(PYTHON))


real = unittest.skipUnless(PACKAGES or (PYTHON.parent.parent / "installed").exists(), MISSING)
here = unittest.skipIf(os.environ.get("GUEST_UNDER") and not PACKAGES, "the image has no such libraries")
OWN = PYTHON.parent.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
once = unittest.skipUnless(PACKAGES or OWN.exists(), "another Python has the same libraries do it")


@real
@here
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


# What each package of the environment data is used for, so that what it has of threads and locks is
# in use when the process is copied.
USES = {
    "beautifulsoup4": "import bs4\nprint(bs4.BeautifulSoup('<p>a<b>b', 'lxml').b.text)",
    "contourpy": "import contourpy\nprint(contourpy.contour_generator(z=[[0, 1], [1, 2]]).lines(1))",
    "cycler": "import cycler\nprint(len(cycler.cycler(color='rgb')))",
    "et-xmlfile": "import et_xmlfile, io\nwith et_xmlfile.xmlfile(io.BytesIO()) as f:\n"
    "    with f.element('a'): pass\nprint('written')",
    "fonttools": "import fontTools.ttLib\nprint(fontTools.ttLib.newTable('head').tableTag)",
    "kiwisolver": "import kiwisolver\nv, s = kiwisolver.Variable('v'), kiwisolver.Solver()\n"
    "s.addConstraint(v == 3); s.updateVariables()\nprint(v.value())",
    "lxml": "import lxml.html\nprint(lxml.html.fromstring('<ul>' + '<li>a' * 5000).xpath('count(//li)'))",
    "matplotlib": "import io, os\nos.environ['MPLCONFIGDIR'] = '/tmp'\nimport matplotlib.pyplot as plt\n"
    "f, a = plt.subplots()\na.plot(range(99)); a.set_title('t'); b = io.BytesIO(); f.savefig(b)\n"
    "plt.close(f); print(b.tell() > 1000)",
    "numpy": "import numpy as np\na = np.full((700, 700), 2.0)\n"
    "print((a @ a).sum(), np.linalg.det(np.eye(300)), np.random.default_rng(1).integers(100, size=3))",
    "openpyxl": "import io, openpyxl\nw = openpyxl.Workbook(); w.active.append([1, 2]); b = io.BytesIO()\n"
    "w.save(b); print(openpyxl.load_workbook(b).active['B1'].value)",
    "packaging": "from packaging.version import Version\nprint(Version('1.10') > Version('1.9'))",
    "pandas": "import pandas as pd\n"
    "d = pd.DataFrame({'k': [i % 7 for i in range(50_000)], 'v': range(50_000)})\n"
    "print(d.groupby('k').v.agg(['sum', 'mean']).sum().tolist(), len(d.merge(d.head(9), on='v')),"
    " d.v.rolling(5).mean().sum())",
    "pillow": "import io\nfrom PIL import Image\nb = io.BytesIO()\n"
    "Image.new('RGB', (900, 900)).resize((300, 300)).rotate(9).save(b, 'PNG'); print(Image.open(b).size)",
    "pyparsing": "import pyparsing\nprint(pyparsing.Word(pyparsing.nums).parse_string('42')[0])",
    "python-dateutil": "import dateutil.parser\nprint(dateutil.parser.parse('2026-11-27').year)",
    "pyyaml": "import yaml\nprint(yaml.load('a: [1, 2]', getattr(yaml, 'CSafeLoader', yaml.SafeLoader)))",
    "soupsieve": "import bs4, soupsieve\n"
    "print(len(soupsieve.select('p', bs4.BeautifulSoup('<p><p>', 'lxml'))))",
    "tabulate": "import tabulate\nprint(tabulate.tabulate([[1, 2]]))",
    "typing-extensions": "import typing_extensions\nprint(typing_extensions.TypedDict('T', {}).__name__)",
    "tzdata": "import importlib.resources, tzdata\n"
    "print(len(importlib.resources.files('tzdata').joinpath('zoneinfo/Europe/Berlin').read_bytes()) > 500)",
}
BAD = "x.clear(); y = 2\nimport os; os._exit(9)"
# A multiplication that all threads of the library for it take part in, and that doesn't end.
ENDLESS = "x.clear()\nprint('begun', flush=True)\nwhile True: a @ a"


def locked() -> set[str]:
    """The packages of the environment data."""
    folder = HERE.parent / "runtime" / "wheels" / "data"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("pylock.data-*.toml")]
    return {name for text in texts for name in re.findall(r'^name = "(.*)"$', text, re.M)}


@real
@here
@once
class RolledBack(unittest.TestCase):
    """The same libraries after a call that was taken back. Each call has PATIENCE: nothing hangs."""

    def good(self, box: Sandbox, code: str) -> str:
        ran = box.call(code)
        self.assertEqual((ran.error, ran.done["sandbox"]), ({}, {"state": "kept"}), f"{code}: {ran.stderr}")
        return ran.stdout

    def test_every_package_of_data(self) -> None:
        self.assertEqual(set(USES), locked(), "each package of the environment data needs a use here")
        with sandbox() as box:
            look = "import importlib.metadata as m\n{d.metadata['Name'].lower() for d in m.distributions()}"
            installed = self.good(box, look)
            used = {name: code for name, code in USES.items() if PACKAGES or f"'{name}'" in installed}
            self.assertLessEqual({"numpy", "pandas", "matplotlib", "pillow"}, set(used))
            self.good(box, "x = [1]; y = 1")
            before = {name: self.good(box, code) for name, code in used.items()}
            for round in range(2):
                self.assertEqual(state(box.call(BAD)), "before")
                for name, code in used.items():
                    self.assertEqual(self.good(box, code), before[name], f"{name}, round {round}")
                self.assertEqual(self.good(box, "print(x, y)"), "[1] 1\n")

    def test_in_the_middle_of_a_multiplication(self) -> None:
        """All threads of BLAS are at work when the call is stopped, as at a time limit."""
        with sandbox() as box:
            first = self.good(box, USES["numpy"] + "\nx = [1]")
            for _ in range(3):
                run = box.begin(ENDLESS)
                box.guest.until("output")
                box.guest.send({"type": "cancel", "id": run})
                self.assertEqual(state(Ran(box.guest.until("done"))), "before")
                self.assertEqual(self.good(box, USES["numpy"]), first)
                self.assertEqual(self.good(box, "print(x)"), "[1]\n")


def has(name: str) -> bool:
    return not PACKAGES and any(PYTHON.parent.parent.glob(f"lib/*/site-packages/{name}"))


@unittest.skipUnless(has("polars") and has("pyarrow"), MISSING)
@here
@once
class NotOfData(unittest.TestCase):
    """Libraries with threads of their own that code may have from PyPI."""

    def test_polars(self) -> None:
        """Its threads don't survive a copy: the result of the call that imports it says so."""
        use = (
            "import polars as pl\n"
            "print(pl.DataFrame({'k': [1, 1, 2]}).lazy().group_by('k').len().collect().height)"
        )
        with sandbox() as box:
            ran = box.call(use)
            told = {"state": "kept", "noWayBack": "polars doesn't survive it"}
            self.assertEqual((ran.stdout, ran.done["sandbox"]), ("2\n", told), ran.error)
            self.assertEqual(box.call(use).done["sandbox"], told)
            ran = box.bad()
            self.assertEqual(state(ran), "lost")
            self.assertIn("polars doesn't survive it", ran.done["sandbox"]["reason"])

    def test_pyarrow(self) -> None:
        use = (
            "import pyarrow as pa, pyarrow.compute as pc\n"
            "t = pa.concat_tables([pa.table({'k': range(50_000), 'v': range(50_000)})] * 8)\n"
            "g = t.group_by('k').aggregate([('v', 'sum')])\n"
            "print(g.num_rows, t.sort_by('v')[0][9], pc.sum(t['v']))\n"
        )
        with sandbox() as box:
            before = box.call(use + "x = [1]; y = 1")
            self.assertEqual((before.error, before.done["sandbox"]), ({}, {"state": "kept"}))
            for _ in range(2):
                self.assertEqual(state(box.call(BAD)), "before")
                self.assertEqual(box.call(use).stdout, before.stdout)
                self.assertEqual(box.call("print(x, y)").stdout, "[1] 1\n")
