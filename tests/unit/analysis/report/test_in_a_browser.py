"""The page in a real browser: it fits a phone, filters and toggles work, and it asks the network for nothing."""

from __future__ import annotations

import html
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from analysis.charts import paper_figures, ratios
from analysis.findings import Findings
from analysis.report import page, summary, tables
from tests.made_report import MANIFEST

pytestmark = [pytest.mark.machine, pytest.mark.timeout(180)]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE = 390  # CSS pixels
# Nothing leaves the machine, whatever the browser itself would like to ask.
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--window-size=1400,900",
    "--hide-scrollbars", "--virtual-time-budget=20000",
)  # fmt: skip
# A window of a browser is at least 500 pixels wide, a frame in it may be narrower.
CHECKS = """
const frame = document.querySelector("iframe");
frame.onload = () => {
  const [page, view] = [frame.contentDocument, frame.contentWindow];
  const seen = (all) => [...page.querySelectorAll(all)].filter((one) => !one.classList.contains("off")).length;
  const set = (input, values) => {
    Object.assign(page.querySelector(input), values).dispatchEvent(new view.Event("input", { bubbles: true }));
  };
  const told = { width: page.documentElement.scrollWidth };
  for (const one of page.querySelectorAll("details")) one.open = true;
  told.width_open = page.documentElement.scrollWidth;
  told.filters_hidden = page.querySelector("#filters").hidden;
  told.rows = seen("tr[data-batch]");
  set("select[data-key=batch]", { value: "1" });
  told.batch_1 = seen('tr[data-batch="1"]');
  told.batch_others = seen('tr[data-batch]:not([data-batch="1"])');
  told.marks_others = seen('.mark[data-batch]:not([data-batch="1"])');
  told.said = page.querySelector("#filters output").textContent;
  told.parts_empty = [...page.querySelectorAll(".part:not(.off)")].filter((part) => {
    const rows = [...part.querySelectorAll("tbody tr")];
    return rows.length && rows.every((row) => row.classList.contains("off"));
  }).length;
  set("select[data-key=batch]", { value: "" });
  set('input[value="dsbs"]', { checked: false });
  told.dsbs = seen('tr[data-arch~="dsbs"], .mark[data-arch~="dsbs"]');
  told.watch = seen('tr[data-arch~="zookeeper-watch"]:not([data-arch~="dsbs"])');
  set('input[value="dsbs"]', { checked: true });
  told.rows_again = seen("tr[data-batch]");
  const heads = [...page.querySelectorAll("#table-cells th")];
  const mean = heads.find((head) => head.textContent === "Mean");
  mean.querySelector("button").click();
  const column = [...mean.parentElement.children].indexOf(mean);
  told.sorted = [...mean.closest("table").tBodies[0].rows].map((row) => Number(row.children[column].dataset.v));
  page.querySelector("figure .drawing").click();
  told.enlarged = page.querySelector("dialog").open && page.querySelector("dialog svg") !== null;
  told.commands = page.querySelectorAll("code.command").length;
  told.copies = page.querySelectorAll("code.command + .copy").length;
  told.titles = [...page.querySelectorAll(".mark > title")].map((title) => title.textContent);
  told.asked = view.performance.getEntriesByType("resource").map((one) => one.name);
  document.querySelector("pre").textContent = JSON.stringify(told);
};
frame.srcdoc = PAGE;
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the browser told, and what it complained of."""

    told: dict[str, Any]
    complaints: list[str]


def browser() -> str:
    found = next(filter(None, map(which, BROWSERS)), None)
    if found is None:
        pytest.skip("no chromium: apt-get install chromium")
    return found


def shown(file: Path, profile: Path) -> tuple[str, list[str]]:
    """The page's elements after its scripts, and the lines of its console."""
    ended = subprocess.run(
        [browser(), *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return ended.stdout, [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]


@pytest.fixture(scope="module")
def seen(steady: Findings, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("browser")
    drawn = [*ratios.figures(steady)][:2] + [*paper_figures.figures(steady)][:1]
    said = summary.summarise(steady, MANIFEST)
    text = page.page(steady, said, tables.every_table(steady), drawn, MANIFEST)
    script = CHECKS.replace("PAGE", json.dumps(text).replace("</", "<\\/").replace("<!--", "<\\!--"))
    wrapper = f'<!doctype html><iframe width="{PHONE}" height="800" style="border:0"></iframe><pre></pre>'
    (folder / "wrapper.html").write_text(f"{wrapper}<script>{script}</script>")
    dumped, complaints = shown(folder / "wrapper.html", folder / "profile")
    (answer,) = re.findall(r"<pre>(.*?)</pre>", dumped, re.DOTALL)[:1]
    return Seen(json.loads(html.unescape(answer)), complaints)


def test_the_page_is_as_wide_as_a_phone(seen: Seen) -> None:
    assert (seen.told["width"], seen.told["width_open"]) == (PHONE, PHONE)


def test_a_filter_hides_the_rows_and_marks_of_other_cells(seen: Seen) -> None:
    assert seen.told["filters_hidden"] is False
    assert seen.told["batch_1"] > 0
    assert (seen.told["batch_others"], seen.told["marks_others"], seen.told["parts_empty"]) == (0, 0, 0)
    assert re.fullmatch(r"\d+ of \d+ rows", seen.told["said"])
    assert seen.told["rows_again"] == seen.told["rows"] > seen.told["batch_1"]


def test_an_architecture_can_be_taken_out(seen: Seen) -> None:
    assert seen.told["dsbs"] == 0
    assert seen.told["watch"] > 0


def test_a_click_sorts_a_column_by_its_exact_values(seen: Seen) -> None:
    values = seen.told["sorted"]
    assert len(values) > 2
    assert values == sorted(values)


def test_a_figure_can_be_enlarged_and_its_marks_say_value_interval_and_n(seen: Seen) -> None:
    assert seen.told["enlarged"] is True
    assert any(re.search(r"dsbs / zookeeper, 32 B.* \(.* to .*\), n = 3", title) for title in seen.told["titles"])


def test_every_command_can_be_copied(seen: Seen) -> None:
    assert seen.told["copies"] == seen.told["commands"] > 20


def test_the_page_asks_the_network_for_nothing_and_the_console_is_empty(seen: Seen) -> None:
    assert seen.told["asked"] == []
    assert seen.complaints == []
