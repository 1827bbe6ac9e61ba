"""The live page: new points within seconds, runs that come, go on and end, and nobody else is answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clipup.report.server import WatchServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WatchServer]:
    folder = tmp_path / "runs"
    folder.mkdir()
    with WatchServer([folder]) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def ask(server: WatchServer, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    headers.setdefault("Host", f"127.0.0.1:{server.server_port}")
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_it_listens_on_this_machine_only(server: WatchServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:80", "localhost@evil", ""])
def test_a_request_under_another_name_is_refused(server: WatchServer, host: str) -> None:
    for path in ("/", "/data"):
        assert ask(server, path, Host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "localhost"])
def test_a_request_through_a_tunnel_comes_under_another_port(server: WatchServer, host: str) -> None:
    for path in ("/", "/data"):
        assert ask(server, path, Host=host)[0] == 200
    assert ask(server, "/data", Host=host, Origin=f"http://{host}")[0] == 200
    assert ask(server, "/data", Host=host, Origin="http://localhost:3000")[0] == 403


def test_a_browser_that_goes_away_leaves_no_word_and_a_fault_leaves_one_line(
    server: WatchServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for error, lines in ((ConnectionResetError(), 0), (ZeroDivisionError("x"), 1)):
        try:
            raise error
        except (ArithmeticError, OSError):
            server.handle_error(None, None)
        assert capfd.readouterr().err.count("\n") == lines


def test_a_fault_in_the_data_is_an_answer_and_drops_no_connection(
    server: WatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "data", lambda have, token: 1 / 0)
    assert ask(server, "/data") == (500, b"ZeroDivisionError\n")


def test_a_request_from_another_site_is_refused(server: WatchServer) -> None:
    assert ask(server, "/data", Origin="http://evil.example")[0] == 403
    assert ask(server, "/data", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/data", Origin="null")[0] == 403
    assert ask(server, "/data", Origin=server.address.rstrip("/"), Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/runs/a/config.toml",
        "/data/../x",
        "//etc/passwd",
    ],
)
def test_no_part_of_an_address_reaches_the_file_system(
    server: WatchServer, make_run, tmp_path: Path, path: str
) -> None:
    make_run(tmp_path / "runs" / "a")
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize(
    "query", ["have=%00,..%2f..,x.y.z,a.1.99999999999", "have=" + "a.0.1," * 5000, "token=../../x"]
)
def test_nonsense_in_a_query_counts_as_having_nothing(
    server: WatchServer, make_run, tmp_path: Path, query: str
) -> None:
    make_run(tmp_path / "runs" / "a")
    status, body = ask(server, f"/data?{query}")
    assert status == 200
    assert len(json.loads(body)["runs"]) == 1


def test_only_what_is_new_is_told(server: WatchServer, make_run, add_generations, tmp_path: Path) -> None:
    path = make_run(tmp_path / "runs" / "a", generations=30)
    first = json.loads(ask(server, "/data")[1])
    key, epoch = first["runs"][0]["key"], first["runs"][0]["epoch"]
    have = f"/data?have={key}.{epoch}.30&token={first['token']}"
    assert json.loads(ask(server, have)[1]) == {"changed": False}
    add_generations(path, 31, 33)
    second = json.loads(ask(server, have)[1])["runs"][0]
    assert second["first"] == 30
    assert second["columns"]["generation"] == [31, 1, 1]


def test_a_run_resumed_from_before_its_last_lines_is_told_anew(
    server: WatchServer, make_run, add_generations, tmp_path: Path
) -> None:
    path = make_run(tmp_path / "runs" / "a", generations=30)
    first = json.loads(ask(server, "/data")[1])
    key, epoch = first["runs"][0]["key"], first["runs"][0]["epoch"]
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join(lines[:20]))
    second = json.loads(ask(server, f"/data?have={key}.{epoch}.30&token={first['token']}")[1])["runs"][0]
    assert second["epoch"] == epoch + 1 and second["first"] == 0
    assert len(second["columns"]["generation"]) == 20


def test_the_page_follows_runs_as_they_start_grow_go_on_and_end(
    server: WatchServer, page, make_run, add_generations, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    page.open(server.address)
    page.wait("document.getElementById('notes').textContent.includes('There is no run yet')")
    path = make_run(folder / "one", generations=10)
    page.wait("clipupReport.data.runs.length === 1", 10)
    rows = "clipupReport.data.runs.find((run) => run.name === 'one').x.generations.length"
    assert page.run(rows) == 10
    add_generations(path, 11, 12)
    page.wait(f"{rows} === 12", 5)
    with (path / "records.jsonl").open("ab") as file:
        file.write(b'{"generation": 13, "popul')
    make_run(folder / "two", generations=20, seed=1)
    page.wait("clipupReport.data.runs.length === 2", 5)
    assert page.run(rows) == 12
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join(lines[:8]))
    page.wait(f"{rows} === 8", 5)
    (folder / "three").mkdir()
    (folder / "three" / "records.jsonl").write_text("nonsense\n")
    page.wait("document.getElementById('finding-list').textContent.includes('not a JSON line')", 5)
    assert page.run("document.querySelectorAll('svg[data-metric=speed] .line').length") > 0
    assert page.complaints == []
    assert all(address.startswith((server.address, "data:")) for address in page.requests)


def test_the_page_says_when_the_server_is_gone_and_hidden_runs_stay_hidden(
    page, make_run, add_generations, tmp_path: Path
) -> None:
    path = make_run(tmp_path / "one", generations=10)
    make_run(tmp_path / "two", generations=10, seed=1)
    serving = WatchServer([tmp_path])
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        page.open(serving.address)
        page.wait("clipupReport.data.runs.length === 2", 10)
        page.run("document.querySelector('.legend-group li input').click()")
        add_generations(path, 11, 11)
        page.wait("clipupReport.data.runs[0].x.generations.length === 11", 5)
        assert page.run("clipupReport.data.runs[0].hidden") is True
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()
    page.wait("document.getElementById('live').textContent.includes('no answer')", 10)


def test_new_points_keep_the_focus_what_is_open_and_the_cursor(
    server: WatchServer, page, make_run, add_generations, tmp_path: Path
) -> None:
    path = make_run(tmp_path / "runs" / "one", generations=10)
    make_run(tmp_path / "runs" / "two", generations=10, max_speed=0.5)
    page.open(server.address)
    page.wait("clipupReport.data.runs.length === 2", 10)
    rows = "clipupReport.data.runs[0].x.generations.length"
    page.run("document.querySelector('svg[data-metric=score]').focus()")
    page.key("ArrowRight")
    at = page.run("clipupReport.pointer.at")
    add_generations(path, 11, 11)
    page.wait(f"{rows} === 11", 5)
    assert page.run("clipupReport.pointer.at") == at
    page.run("document.querySelectorAll('#repeat-list details')[1].open = true")
    page.run("document.querySelectorAll('#repeat-list details')[1].querySelector('button').focus()")
    label = page.run("document.activeElement.ariaLabel")
    assert label.startswith("Copy: clipup train")
    add_generations(path, 12, 12)
    page.wait(f"{rows} === 12", 5)
    assert page.run("[...document.querySelectorAll('#repeat-list details')].map((d) => d.open)") == [False, True]
    assert page.run("document.activeElement.ariaLabel") == label
    assert page.complaints == []


def test_two_servers_cannot_share_a_port(server: WatchServer, tmp_path: Path) -> None:
    from clipup.errors import InvalidArgument

    with pytest.raises(InvalidArgument, match="cannot listen on port"):
        WatchServer([tmp_path], server.server_port)
