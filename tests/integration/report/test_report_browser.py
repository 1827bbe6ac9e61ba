"""The report in a real browser: it opens without complaint, its controls work, its numbers are those of the records."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from clipup.report import make_report
from clipup.runs.records import ClockRecord, encode_line, read_clock, read_records

# Of a selector and a property, the contrast of each element with what it stands on.
CONTRASTS = """((selector, property) => {
  const channel = (x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
  const light = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const clear = (element) => element.parentElement && getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)';
  return [...document.querySelectorAll(selector)].map((element) => {
    let under = element;
    while (clear(under)) under = under.parentElement;
    const ink = light(getComputedStyle(element)[property]);
    const paper = light(getComputedStyle(under).backgroundColor);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }); })"""
NASTY = "</script><img src=x onerror=alert(1)>\u2028&'\""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, make_run) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("runs")
    runs = [make_run(folder / f"slow-{seed}", seed=seed, max_speed=0.05) for seed in range(3)]
    runs += [make_run(folder / f"fast-{seed}", seed=seed, max_speed=0.5) for seed in range(3)]
    runs.append(make_run(folder / NASTY.replace("/", "∕"), seed=9, max_speed=0.5))
    broken = folder / "broken"
    broken.mkdir()
    (broken / "config.toml").write_text("env = <b>nonsense</b>")
    page = folder / "report.html"
    page.write_text(make_report([folder]), encoding="utf-8")
    return page, runs


def store_line(page, run: str, axis: str, metric: str) -> list[list[float]]:
    return page.run(
        f"""(() => {{ const run = clipupReport.data.runs.find((run) => run.name === {run!r});
        return run.x.{axis}.map((x, i) => [x, Number.isNaN(run.y.{metric}[i]) ? null : run.y.{metric}[i]]); }})()"""
    )


def center_of(page, selector: str) -> tuple[float, float, float, float]:
    page.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    return tuple(page.run(f"(({{left, top, width, height}}) => [left, top, width, height])({box})"))


def test_it_opens_from_a_file_without_complaints_or_requests(page, report) -> None:
    page.open(report[0].as_uri())
    assert page.run("document.documentElement.dataset.ready") == "yes"
    assert page.complaints == []
    assert [address for address in page.requests if not address.startswith(("data:", report[0].as_uri()))] == []
    assert page.run("document.querySelectorAll('svg.plot .line').length") > 10


def test_names_of_directories_are_shown_and_never_run(page, report) -> None:
    page.open(report[0].as_uri())
    shown = page.run("document.body.textContent")
    assert NASTY.replace("/", "∕") in shown
    assert page.run("document.images.length") == 0
    assert "broken" in shown and "not valid TOML" in shown


def test_every_number_of_a_run_is_that_of_its_records(page, report) -> None:
    page.open(report[0].as_uri())
    for path in report[1][:4]:
        records = read_records(path / "records.jsonl")
        for metric in (
            "score",
            "fitness_mean",
            "speed",
            "stdev_norm",
            "population",
            "gradient_norm",
            "gradient_agreement",
        ):
            expected = [[float(record.generation), getattr(record, metric)] for record in records]
            assert store_line(page, path.name, "generations", metric) == expected
        clock = read_clock(path / "clock.jsonl")
        found = store_line(page, path.name, "time", "steps_per_second")
        assert np.array(found) == pytest.approx(
            np.array([[line.seconds, line.steps_per_second] for line in clock]), rel=1e-12
        )
        assert [x for x, _ in store_line(page, path.name, "interactions", "speed")] == [
            record.total_interactions for record in records
        ]


def test_the_median_and_quartiles_are_those_of_the_records(page, report) -> None:
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    shown = page.run("clipupReport.charts[0].series.map((s) => [s.label, s.x, s.y, s.low, s.high])")
    label, x, median, low, high = shown[0]
    assert label == "max_speed 0.05"
    scores = np.array(
        [[r.score for r in read_records(p / "records.jsonl") if r.score is not None] for p in report[1][:3]]
    )
    quartiles = np.percentile(scores, [25, 50, 75], axis=0)
    assert x == [5, 10, 15, 20, 25, 30]
    np.testing.assert_allclose([low, median, high], quartiles, rtol=1e-13)


def test_lines_are_drawn_where_the_numbers_say(page, report) -> None:
    """Pixels back to numbers: through the drawn path and the labels of the axis."""
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    drawn = page.run(
        """(() => {
        const chart = clipupReport.charts[0];
        const path = chart.plot.querySelector('.line.c0').getAttribute('d');
        const labels = [...chart.plot.querySelectorAll('.tick-label')].map(
          (t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y'), t.getAttribute('text-anchor')]);
        return [path, labels, chart.series[0].y]; })()"""
    )
    points = np.array([point.split(",") for point in drawn[0][1:].split("L")], float)
    levels = [
        (float(text.replace("−", "-").replace(",", "")), y - 4) for text, _, y, anchor in drawn[1] if anchor == "end"
    ]
    values, pixels = np.array(levels[:3]).T
    recovered = np.interp(points[:, 1], pixels[::-1], values[::-1], left=np.nan, right=np.nan)
    slope = (values[1] - values[0]) / (pixels[1] - pixels[0])
    recovered = values[0] + (points[:, 1] - pixels[0]) * slope
    assert recovered == pytest.approx(np.array(drawn[2]), abs=abs(slope) * 0.1)


def test_the_axes_switch(page, report) -> None:
    page.open(report[0].as_uri())
    for axis, words in (
        ("generations", "generations"),
        ("time", "training time"),
        ("interactions", "interactions"),
    ):
        page.run(f"document.querySelector('#axis-{axis}').click()")
        assert page.run("document.querySelector('.axis-title').textContent") == words


def test_single_runs_show_on_demand_and_runs_can_be_hidden(page, report) -> None:
    page.open(report[0].as_uri())
    count = "document.querySelectorAll('svg[data-metric=score] .line').length"
    assert page.run(count) == 2
    page.run("document.querySelector('#mode-single').click()")
    assert page.run(count) == 7
    page.run("document.querySelectorAll('#legend-list input[type=checkbox]')[1].click()")
    assert page.run(count) == 6
    page.run("document.querySelector('.legend-group label.group input').click()")
    assert page.run(count) == 4
    page.run("document.querySelector('#mode-median').click()")
    assert page.run(count) == 1


def test_the_mouse_reads_values_and_zooms_and_a_double_click_resets(page, report) -> None:
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    left, top, width, height = center_of(page, "svg[data-metric=score]")
    page.mouse("mouseMoved", left + width * 0.55, top + height / 2)
    tooltip = page.run("document.getElementById('tooltip').innerText")
    assert "generation 15" in tooltip and "max_speed 0.05" in tooltip
    value = page.run("clipupReport.charts[0].series[0].y[2]")
    assert f"{value:.4g}"[:4] in tooltip
    assert page.run("document.querySelectorAll('.cursor').length") == page.run(
        "document.querySelectorAll('svg.plot').length"
    )
    page.mouse("mousePressed", left + width * 0.4, top + height / 2, button="left", clickCount=1)
    page.mouse("mouseMoved", left + width * 0.7, top + height / 2, button="left", buttons=1)
    page.mouse("mouseReleased", left + width * 0.7, top + height / 2, button="left", clickCount=1)
    low, high = page.run("clipupReport.view.domain")
    assert 9 < low < 14 and 19 < high < 23
    assert page.run("document.getElementById('reset').disabled") is False
    page.run("document.getElementById('reset').click()")
    assert page.run("clipupReport.view.domain") is None


def test_the_keyboard_reads_values_aloud_and_zooms(page, report) -> None:
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    page.run("document.querySelector('svg[data-metric=score]').focus()")
    page.key("End")
    assert "generation 30" in page.run("document.getElementById('announcer').textContent")
    page.key("ArrowLeft", modifiers=8)
    assert "generation 25" in page.run("document.getElementById('announcer').textContent")
    page.key("+")
    assert page.run("clipupReport.view.domain") is not None
    page.key("Escape")
    assert page.run("clipupReport.view.domain") is None


def test_hiding_runs_keeps_the_focus_what_is_open_and_the_cursor(page, report) -> None:
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    page.run("document.querySelector('#repeat-list details').open = true")
    page.run("document.querySelector('.legend-group details').open = true")
    group, member = "document.querySelector('.legend-group label.group input')", "document.querySelector('li input')"
    page.run(f"{group}.focus(); {group}.click()")
    assert page.run(f"document.activeElement === {group}") is True
    assert page.run("document.querySelector('#repeat-list details').open") is True
    assert page.run(f"{member}.checked") is False
    page.run(f"{member}.focus(); {member}.click()")
    assert page.run(f"document.activeElement === {member}") is True
    assert page.run(f"[{group}.checked, {group}.indeterminate]") == [True, True]
    page.run("document.querySelector('svg[data-metric=score]').focus()")
    page.key("End")
    at = page.run("clipupReport.pointer.at")
    page.run("clipupReport.redraw()")
    assert page.run("clipupReport.pointer.at") == at
    assert page.run("document.querySelectorAll('svg[data-metric=score] .cursor').length") == 1
    page.run("document.querySelector('#axis-interactions').click()")
    assert page.run("clipupReport.pointer.at") is None


def test_times_are_rounded_before_they_are_split(page, make_run, tmp_path: Path) -> None:
    for seconds, words in ((119.7, "2 min 0 s"), (59.97, "1 min 0 s"), (3599.8, "1 h 0 min"), (7199, "2 h 0 min")):
        path = make_run(tmp_path / words.replace(" ", "-"), generations=5)
        (path / "clock.jsonl").write_text(f'{{"generation": 5, "seconds": {seconds}, "steps_per_second": 1.0}}\n')
        (tmp_path / "page.html").write_text(make_report([path]), encoding="utf-8")
        page.open((tmp_path / "page.html").as_uri())
        page.wait("document.querySelectorAll('.tile').length")
        assert words in page.run("document.getElementById('tiles').innerText")


def test_each_chart_has_its_numbers_as_a_table(page, report) -> None:
    page.open(report[0].as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    page.run("document.querySelectorAll('.data-table').forEach((d) => { d.open = true; })")
    page.wait("document.querySelectorAll('.data-table table').length >= 8")
    rows = page.run(
        "[...document.querySelector('.data-table').querySelectorAll('tbody tr')].map((r) => r.innerText.split('\\t'))"
    )
    assert [row[0] for row in rows] == ["5", "10", "15", "20", "25", "30"]
    median = page.run("clipupReport.charts[0].series[0].y[0]")
    assert float(rows[0][1].replace(",", "")) == pytest.approx(median, rel=1e-3)


def test_everything_has_a_name_for_a_screen_reader(page, report) -> None:
    page.open(report[0].as_uri())
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in tree
        if node.get("role", {}).get("value") in ("button", "checkbox", "radio", "img", "link", "heading", "table")
        and not node.get("ignored")
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_it_fits_its_window_and_its_text_stands_out(page, report, width: int, dark: bool) -> None:
    page.open(report[0].as_uri(), width=width, height=800, dark=dark)
    assert page.run("document.documentElement.scrollWidth") <= width
    check_contrasts(page)


def check_contrasts(page) -> None:
    texts = ("#title", "#subtitle", ".tile-detail", ".hint", "footer", "td", ".badge", ".where", "tr.broken th")
    for selector, kind in [(text, "color") for text in texts] + [(".tick-label", "fill")]:
        contrasts = page.run(f"{CONTRASTS}({selector!r}, {kind!r})")
        assert min(contrasts) >= 4.5, f"{selector}: WCAG AA"


@pytest.mark.parametrize("chosen", [False, True])
def test_it_prints_in_ink_on_white_even_from_a_dark_screen(page, report, chosen: bool) -> None:
    page.open(report[0].as_uri(), dark=not chosen)
    if chosen:
        page.run("document.getElementById('theme').click()")
    screen = {"name": "prefers-color-scheme", "value": "light" if chosen else "dark"}
    page.call("Emulation.setEmulatedMedia", media="print", features=[screen])
    check_contrasts(page)
    tones = page.run(
        "['problem', 'warning', 'note', 'well'].map((name) => getComputedStyle(document.documentElement)"
        ".getPropertyValue(`--${name}`))"
    )
    page.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.run("document.documentElement.dataset.theme = 'light'")
    assert tones == page.run(
        "['problem', 'warning', 'note', 'well'].map((name) => getComputedStyle(document.documentElement)"
        ".getPropertyValue(`--${name}`))"
    )
    page.call("Emulation.setEmulatedMedia", media="print", features=[screen])
    assert page.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert len(page.call("Page.printToPDF", printBackground=True)["data"]) > 10_000


def test_paper_shows_how_to_repeat_each_run_and_the_screen_is_as_before(page, report) -> None:
    page.open(report[0].as_uri())
    details = "[...document.querySelectorAll('#repeat-list details')]"
    page.run(f"{details}[1].open = true; document.getElementById('legend').open = false")
    before = page.run(f"{details}.map((one) => one.open)")
    assert before == [False, True, False, False, False, False, False]
    page.run(
        """window.addEventListener('beforeprint', () => {
        window.printed = [...document.querySelectorAll('#repeat-list code, #legend-list .group-label')].map(
          (one) => one.checkVisibility()); })"""
    )
    page.call("Page.printToPDF")
    page.wait("window.printed")
    assert page.run("window.printed") == [True] * (2 * 7 + 3)
    page.wait("!document.getElementById('legend').open")
    assert page.run(f"{details}.map((one) => one.open)") == before


def test_where_a_chart_has_no_value_the_reader_hears_so(page, make_run, tmp_path: Path) -> None:
    path = make_run(tmp_path / "a", generations=60)
    lines = (path / "records.jsonl").read_text().splitlines()
    gone = [line.replace('"gradient_agreement": ', '"gradient_agreement": null, "was": ') for line in lines[15:]]
    (path / "records.jsonl").write_text("\n".join([*lines[:15], *gone, ""]))
    (tmp_path / "page.html").write_text(make_report([path]), encoding="utf-8")
    page.open((tmp_path / "page.html").as_uri())
    page.run("document.querySelector('#axis-generations').click()")
    page.run("document.querySelector('svg[data-metric=gradient_agreement]').focus()")
    heard, tooltip = "document.getElementById('announcer').textContent", "document.getElementById('tooltip')"
    page.key("Home")
    assert page.run(heard).startswith("generation 1 Walker2d-v4 0.")
    page.key("End")
    assert page.run(heard) == "generation 60: no value here"
    assert page.run(f"[{tooltip}.hidden, {tooltip}.textContent]") == [True, ""]
    page.run("document.querySelector('svg[data-metric=score]').focus()")
    page.key("End")
    assert page.run(heard).startswith("generation 60 Walker2d-v4 ")
    assert page.run(f"{tooltip}.hidden") is False
    page.run("document.activeElement.blur()")
    assert page.run(f"[{tooltip}.hidden, {tooltip}.textContent]") == [True, ""]


def saved_csv(page, metric: str) -> list[list[str]]:
    """What the button below a chart saves."""
    text = page.run(
        f"""(async () => {{
        const chart = clipupReport.charts.find((chart) => chart.metric.key === {metric!r});
        const make = URL.createObjectURL;
        let saved;
        URL.createObjectURL = (blob) => {{ saved = blob; return make.call(URL, blob); }};
        HTMLAnchorElement.prototype.click = () => {{}};
        chart.details.open = true;
        chart.fillTable();
        chart.details.querySelector('button').click();
        return saved.text(); }})()"""
    )
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(("generations", "length"), [(1000, 0.02), (60, 0.0003)])
def test_the_saved_table_has_every_generation_over_time_however_short(
    page, make_run, tmp_path: Path, generations: int, length: float
) -> None:
    times = [round(length * generation, 3) for generation in range(1, generations + 1)]
    for seed in range(5):
        path = make_run(tmp_path / f"run-{seed}", generations=generations, seed=seed)
        clock = [ClockRecord(place + 1, time, 1000.0 + place + seed) for place, time in enumerate(times)]
        (path / "clock.jsonl").write_bytes(b"".join(map(encode_line, clock)))
    (tmp_path / "page.html").write_text(make_report([tmp_path]), encoding="utf-8")
    page.open((tmp_path / "page.html").as_uri())
    page.run("document.querySelector('#axis-time').click(); document.querySelector('#mode-single').click()")
    head, *rows = saved_csv(page, "steps_per_second")
    assert head == ["Training time", *(f"run-{seed}" for seed in range(5))]
    assert [row[0] for row in rows] == [f"{time:g}" for time in times]
    shown = [[float(cell) for cell in row[1:]] for row in rows]
    wanted = [[1000.0 + place + seed for seed in range(5)] for place in range(generations)]
    np.testing.assert_allclose(shown, wanted, atol=generations / 1000 if generations > 900 else 0)
    note = page.run("document.querySelector('.data-table[open] .table-note').textContent")
    assert ("one in 5 of 1,000 rows; the CSV has them all" in note) == (generations == 1000)
    notices = page.run("[...document.querySelectorAll('.notice')].map((notice) => notice.textContent).join()")
    assert ("Scores and times are exact" in notices) == (generations == 1000)


def test_thirty_runs_of_a_thousand_generations_stay_small_and_show_their_numbers(
    page, tmp_path: Path, make_run
) -> None:
    for number in range(30):
        make_run(
            tmp_path / f"run-{number:02}", generations=1000, seed=number % 10, max_speed=(0.05, 0.15, 0.5)[number // 10]
        )
    text = make_report([tmp_path])
    assert len(text) < 1_000_000
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    page.open((tmp_path / "report.html").as_uri())
    assert page.complaints == []
    records = read_records(tmp_path / "run-07" / "records.jsonl")
    assert store_line(page, "run-07", "generations", "score") == [[float(r.generation), r.score] for r in records]
    found = np.array(store_line(page, "run-07", "interactions", "fitness_mean"))
    expected = np.array([[r.total_interactions, r.fitness_mean] for r in records])
    assert (found[:, 0] == expected[:, 0]).all()
    clock = read_clock(tmp_path / "run-07" / "clock.jsonl")
    assert [x for x, _ in store_line(page, "run-07", "time", "speed")] == [line.seconds for line in clock]
    assert found[:, 1] == pytest.approx(expected[:, 1], abs=np.ptp(expected[:, 1]) / 1000)
