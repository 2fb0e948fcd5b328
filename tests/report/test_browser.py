"""The page in a browser: it draws without a complaint, and keyboard and buttons lead through the episodes.

Skipped where there is no Chromium. ``HUNCH_AXE``, the path of an axe.min.js, adds the check of accessibility.
"""

import csv
import io
import json
import os
import re
import zlib
from base64 import b64decode
from pathlib import Path

import pytest
from tests.report.chromium import FOUND, Chromium
from tests.report.hostile import EVIL

from hunch.report.cells import as_csv
from hunch.report.gather import collect
from hunch.report.page import page

pytestmark = pytest.mark.skipif(not FOUND, reason="there is no Chromium")
AXE = os.environ.get("HUNCH_AXE", "")
LOOKS = [(1200, False), (1200, True), (360, False), (360, True)]


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(*collect([runs]), episodes=3))
    return path


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser, file):
    browser.look()
    browser.complaints.clear()
    browser.open(file)
    show(browser, "FrozenLake")
    yield browser
    assert browser.complaints == []


def show(browser, place):
    """Choose the comparison in a place and wait until its first episode is shown."""
    titles = browser.js("DATA.comparisons.map(each => each.title)")
    index = next(i for i, title in enumerate(titles) if place in title)
    choose(browser, "comparison", str(index))
    browser.wait("current().arms.some(arm => arm.runs.some(run => view.block === blocks.get(run)))")


def text(browser, id):
    return browser.js(f"document.getElementById('{id}').textContent")


def choose(browser, id, value):
    """Choose in a list, as a reader does."""
    then = f"e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change'))"
    browser.js(f"(e => {{ {then} }})(document.getElementById('{id}'))")


def test_axes_change_the_curves(opened):
    seen = set()
    for y in ("success", "return"):
        for x in ("steps", "calls", "requests", "tokens", "seconds"):
            for name, value in (("y", y), ("x", x)):
                opened.js(f"document.querySelector('input[name={name}][value={value}]').click()")
            seen.add(opened.js("document.querySelector('#chart svg').outerHTML"))
            assert opened.js("document.querySelectorAll('#chart svg [data-arm]').length") == 2
    assert len(seen) == 10


def test_the_cursor_reads_the_curves(opened):
    opened.js("document.getElementById('reading').focus()")
    opened.press("End")
    data = opened.js("DATA")
    last = data["comparisons"][1]["arms"][0]["curves"]["steps success"]["value"][-1]
    assert f"{last:.2f}" in opened.js("document.querySelector('#legend tbody td').textContent")
    opened.js("document.querySelector('#legend input').click()")
    assert opened.js("document.querySelectorAll('#chart svg [data-arm]').length") == 1


def test_keys_and_buttons_step_through_an_episode(opened):
    choose(opened, "filter", "all")
    number = int(re.search(r"of (\d+)", text(opened, "step-label"))[1])
    opened.js("document.getElementById('stage').focus()")
    for step in range(1, number + 1):
        assert text(opened, "step-label") == f"Step {step} of {number}"
        assert opened.js("document.querySelectorAll('.actions .taken').length") == 1
        opened.press("ArrowRight")
    assert "The episode ends here" in text(opened, "moment")
    opened.press("Home")
    assert text(opened, "step-label").startswith("Step 1 ")
    opened.js("document.getElementById('to-last').click()")
    assert text(opened, "step-label") == f"Step {number} of {number}"
    before = opened.js("document.getElementById('episode').value")
    opened.press("ArrowUp")
    assert int(opened.js("document.getElementById('episode').value")) == int(before) - 1


def test_the_viewer_shows_what_was_played(opened):
    """The actions of the first and of every explained episode, with bars where there are opinions."""
    data = opened.js("DATA")
    words, *blocks = (json.loads(zlib.decompress(b64decode(b))) for b in [data["words"], *data["blocks"]])
    run = data["comparisons"][1]["arms"][0]["runs"][1]
    choose(opened, "run", str(run))
    opened.wait(f"view.block === blocks.get({run})")
    block = blocks[run]
    for episode in [0, *map(int, block["opinions"])]:
        choose(opened, "episode", str(episode))
        start = sum(block["length"][:episode])
        for step in range(block["length"][episode]):
            taken = opened.js("document.querySelector('.actions .taken .name').firstChild.textContent")
            assert taken == words["texts"][block["actions"][start + step]]
            bars = opened.js("document.querySelectorAll('.actions .taken td').length")
            assert bars == (3 if str(episode) in block["opinions"] else 0)
            opened.js("document.getElementById('to-next').click()")


def test_texts_are_shown_and_not_obeyed(opened):
    show(opened, "Hostile")
    assert text(opened, "task") == EVIL
    assert opened.js("document.querySelector('.said').textContent") == EVIL
    assert opened.js("document.querySelector('.actions .name').textContent").startswith(EVIL)
    assert opened.js("window.hacked === undefined && document.images.length === 0")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_nothing_sticks_out(opened, width, dark):
    opened.look(width, dark=dark)
    assert opened.js("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE, reason="HUNCH_AXE does not name an axe.min.js")
@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_accessible(opened, width, dark):
    opened.look(width, dark=dark)
    opened.js("document.querySelectorAll('details').forEach(each => { each.open = true })")
    opened.js(Path(AXE).read_text() + ";0")
    found = opened.js(
        "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html)]))"
    )
    assert [each for each in found if each[0] in ("serious", "critical")] == []


def test_an_old_browser_is_told(browser, file):
    browser.look()
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    browser.open(file)
    assert "--plain" in text(browser, "stage-note")
    browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_plain_blocks_need_no_unpacking(browser, runs, tmp_path):
    path = tmp_path / "plain.html"
    path.write_text(page(*collect([runs]), episodes=0, plain=True))
    browser.look()
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    browser.open(path)
    assert text(browser, "step-label").startswith("Step 1 of")
    browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_plain_programs_need_no_unpacking(browser, programs, tmp_path):
    path = tmp_path / "plain.html"
    path.write_text(page(*collect([programs]), episodes=0, plain=True))
    browser.look()
    browser.open(path)
    binpacking = browser.js("DATA.comparisons.findIndex(c => c.title.includes('BinPacking'))")
    choose(browser, "comparison", str(binpacking))
    browser.wait("document.getElementById('kept-body').textContent !== ''")
    assert "fitness" in text(browser, "kept-body")


def test_more_metrics_and_downloads(opened):
    opened.js("document.querySelector('input[name=y][value=loss]').click()")
    assert opened.js("document.querySelectorAll('#chart svg [data-arm]').length") == 1
    read = "new DOMParser().parseFromString(chartText(), 'image/svg+xml')"
    assert opened.js(f"{read}.querySelector('path') !== null")
    rows = opened.js("curvesText()").splitlines()
    assert rows[0] == '"arm","steps","loss","low","high"'
    assert len(rows) > 10
    opened.js("document.querySelector('input[name=y][value=success]').click()")


@pytest.mark.parametrize(
    "name", ["=1+1", "\n@SUM(A1)", "-2+3", "\uff1d1", '=a"b', "dqn", "-1.5", "-", "a,=1"]
)
def test_a_download_holds_the_cells_of_the_tables(opened, name):
    opened.js(f"window.kept_label = current().arms[0].label; current().arms[0].label = {json.dumps(name)}")
    downloaded = list(csv.reader(io.StringIO(opened.js("curvesText()"))))
    opened.js("current().arms[0].label = kept_label")
    in_tables = list(csv.reader(io.StringIO(as_csv(["arm"], [{"arm": name}]))))
    assert downloaded[1][0] == in_tables[1][0]


def test_curves_are_smoothed_and_arms_sorted(opened):
    raw = opened.js("curvesText()")
    choose(opened, "smooth", "25")
    values = "current().arms.map(arm => curveOf(arm).value)"
    smooth = opened.js(values)
    assert opened.js("curvesText()") != raw
    rough = opened.js("current().arms.map(arm => arm.curves['steps success'].value)")
    spread = [max(line) - min(line) for line in smooth]
    assert all(a <= b + 1e-9 for a, b in zip(spread, [max(line) - min(line) for line in rough], strict=True))
    choose(opened, "smooth", "0")
    assert opened.js("curvesText()") == raw
    heads = "document.querySelectorAll('#costs .sort')"
    names = "[...document.querySelectorAll('#costs tbody th')].map(e => e.textContent)"
    before = opened.js(names)
    opened.js(f"{heads}[0].click()")
    assert opened.js(names) == sorted(before)
    opened.js(f"{heads}[0].click()")
    assert opened.js(names) == sorted(before, reverse=True)
    assert opened.js("document.querySelector('#costs [aria-sort]').getAttribute('aria-sort')") == "descending"
    opened.js(f"{heads}[0].click()")
    assert opened.js(names) == before
    choose(opened, "order", "score")
    scores = opened.js("ordered().map(({arm}) => arm.final.success[0])")
    assert scores == sorted(scores, reverse=True)
    choose(opened, "order", "compared")


def test_programs_and_diaries_are_shown(browser, programs, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(*collect([programs]), episodes=0))
    browser.look()
    browser.complaints.clear()
    browser.open(path)
    choose(
        browser,
        "comparison",
        str(browser.js("DATA.comparisons.findIndex(c => c.title.includes('BinPacking'))")),
    )
    browser.wait("document.querySelectorAll('#family circle').length === 12")
    assert "fitness" in text(browser, "kept-body")
    assert "best of n" in text(browser, "family-note")
    choose(browser, "kept-filter", "best")
    assert browser.js("keeping.listed.every(i => keeping.entries[i].best)")
    choose(
        browser, "comparison", str(browser.js("DATA.comparisons.findIndex(c => c.title.includes('Lake'))"))
    )
    browser.wait("document.getElementById('kept-body').textContent.includes('plan')")
    assert EVIL in text(browser, "kept-body")
    assert browser.js("document.getElementById('family').hidden")
    assert browser.complaints == []
