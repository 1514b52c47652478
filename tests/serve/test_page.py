"""The page, as people meet it: in Chromium, with real keys, clicks and workers."""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from difflogic.config import presets, recipes
from difflogic.config.agent_presets import POLE
from difflogic.config.request import TrainRequest
from difflogic.core import gates, rules, text_picture
from difflogic.devices.open import Placement, open_engine
from difflogic.engine import job as tasks
from difflogic.runs import attempts, film, plots
from difflogic.serve.api.auth import COOKIE
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.store.jobs import KINDS, SORTS, STATUSES, JobSpec
from difflogic.serve.store.presence import Presence
from difflogic.serve.worker.supervisor import Supervisor
from difflogic.train import restarts
from tests.programs import needs
from tests.serve.chromium import Browser, Page, barriers, chromium
from tests.serve.live import ANN, BEN, Live, serving
from tests.serve.service import ended, reached, short_config, spec_of
from tests.serve.test_classifiers import CSV
from tests.serve.test_own_samples import frames, gif
from tests.serve.test_restarts import flat

pytestmark = pytest.mark.usefixtures("compiled")

UNSIGNED = "401 (Unauthorized)"
"""Message of Chromium itself when the page asks for the session and no user is signed in."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    needs("chromium")
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("store")
    with serving(folder) as running, Supervisor(folder, ["cpu"]):
        yield running


@pytest.fixture(scope="module")
def cookie(live: Live) -> str:
    with live.client(token=None) as client:
        client.post("/session", json={"token": ANN})
        return str(client.cookies[COOKIE])


@pytest.fixture
def opened(browser: Browser, live: Live, cookie: str) -> Iterator[Callable[..., Page]]:
    """Pages at an address behind the #, signed in; none may have had a problem in the end, but those in `allowed`."""
    pages: list[tuple[Page, tuple[str, ...]]] = []

    def open_page(place: str = "#/", allowed: tuple[str, ...] = (), **look: object) -> Page:
        page = browser.page(**look)  # type: ignore[arg-type]
        pages.append((page, allowed))
        page.call("Network.setCookie", name=COOKIE, value=cookie, url=live.address)
        page.goto(live.address + "/" + place)
        page.wait("document.querySelector('main h1')")
        return page

    yield open_page
    for page, allowed in pages:
        problems = [each for each in page.problems() if not any(known in each for known in allowed)]
        page.close()
        assert not problems


def sign_in(page: Page, address: str, token: str = ANN) -> None:
    page.goto(address)
    page.wait("document.querySelector('.sign-in input')")
    page.fill(".sign-in input", token)
    page.press("Enter")
    page.wait("!document.querySelector('.sign-in') && document.querySelector('main h1')")


def say(page: Page, settings: dict[str, str]) -> None:
    """Fill in settings under More, each found by a word."""
    page.wait("document.querySelector('.more')")
    page.js("document.querySelector('.more').open = true")
    for name, text in settings.items():
        page.fill("[name=word]", name.removeprefix("set."))
        page.fill(f"[name='{name}']", text)


def choose_action(page: Page, name: str) -> None:
    page.click(".menu summary")
    page.click(f"[data-action={name}]")


def submitted(live: Live, **fields: object) -> str:
    return live.store.submit("ann", spec_of(short_config(1500), **fields))[0].id


@pytest.fixture(scope="module")
def trained(live: Live) -> str:
    job = submitted(live)
    assert ended(live.store, job).status == "done"
    return job


def test_signing_in_and_out(browser, live):
    page = browser.page()
    page.goto(live.address)
    page.wait("document.querySelector('.sign-in input')")
    assert barriers(page) == []
    page.fill(".sign-in input", "not-a-token-of-this-server")
    page.press("Enter")
    page.see("Unknown token: use one of the server's tokens.", ".sign-in .error")
    page.fill(".sign-in input", ANN)
    page.press("Enter")
    page.wait("!document.querySelector('.sign-in') && document.querySelector('main h1')")
    assert page.text("h1") == "Jobs"
    assert page.js("document.cookie") == ""  # no script can read it
    page.click("#leave")
    page.see("Sign in", "h1")
    assert all(UNSIGNED in problem for problem in page.problems())
    page.close()


def test_a_preset_is_submitted_and_watched_until_it_can_be_simplified(opened, live):
    page = opened("#/new")
    page.click("[value=heart-steady]")
    page.see("10 cells wide", ".preview")
    page.click("[name=sure][value=counted]")
    page.fill("[name=epochs]", "600")
    say(page, {"name": "a heart", "engine": "cpu", "set.train.eval_interval": "20"})
    page.see("600", ".preview")
    page.click(".preview button")
    page.wait("document.querySelector('.job-head .pill')?.innerText === 'Running'")
    before = page.js("document.querySelector('progress').value")
    page.wait(f"document.querySelector('progress').value > {before}")
    page.wait("document.querySelectorAll('.tiles canvas').length === 16")
    page.see("At epoch", ".automaton")
    points = "document.querySelector('.curves .line.soft').getAttribute('d').split('L').length"
    some = page.js(points)
    page.wait(f"{points} > {some}")
    page.wait("document.querySelector('.job-head .pill').innerText === 'Not solved'")
    page.see("600 of 600 epochs", ".progress")
    page.wait("document.querySelectorAll('.curves .dot.hard').length >= 2 * 30")
    assert "a heart: Not solved: the best circuit has " in page.js("document.getElementById('news').textContent")
    page.click(".gates summary")
    page.see("at epoch 600", ".gates")
    page.click(".files-of summary")
    page.see("metrics.csv", ".files")
    choose_action(page, "smaller")
    page.see("from its own initial state", "dialog")
    page.click("dialog .primary")
    page.see("Proved equal only from its own initial state", ".follow-ups")
    page.wait("document.querySelector('.living')?.src.endsWith('live.html')")
    assert live.store.jobs("ann", text="a heart", kind="train")[0].config["train"]["epochs"] == 600


def test_pause_resume_cancel_and_delete(opened, live):
    job, _ = live.store.submit("ann", spec_of(short_config(epochs=200_000)))
    # What the page asked for just before the job was deleted is answered with 404, which the browser notes.
    page = opened(f"#/jobs/{job.id}", allowed=("404",))
    page.wait("document.querySelector('.job-head .pill')?.innerText === 'Running'")
    reached(live.store, job.id, 50)
    page.click("[data-action=pause]")
    page.see("Paused", ".job-head .pill")
    assert live.store.job(job.id).status == "paused"
    assert page.focused() == "Actions for tiny"  # not lost with the button that went away
    page.press("Tab")
    assert page.focused() == "Resume"
    page.press("Enter")
    page.see("Running", ".job-head .pill")
    page.click("[data-action=cancel]")
    page.see("Cancelled", ".job-head .pill")
    assert live.store.job(job.id).status == "cancelled"
    choose_action(page, "delete")
    page.see("cannot be undone", "dialog")
    page.press("Escape")
    assert live.store.job(job.id)
    choose_action(page, "delete")
    page.click("dialog .danger")
    page.see("Jobs", "h1")
    assert job.id not in [each.id for each in live.store.jobs("ann")]


def test_a_failed_name_or_priority_is_said_where_it_was_given(opened, live):
    job = submitted(live, engine="gpu:9")
    page = opened(f"#/jobs/{job}", allowed=("422",))
    for action, text in (("rename", "a/b"), ("priority", "11")):
        choose_action(page, action)
        page.fill("dialog input", text)
        page.press("Enter")
        page.see("name" if action == "rename" else action, ".job-head .error")
    assert live.store.job(job).priority == 0
    page.wait("!document.querySelector('.columns').hidden")
    live.store.ask(job, "cancel")
    page.wait("document.querySelector('.columns').hidden")  # without a row there is nothing to draw
    live.store.delete(job)


@pytest.fixture
def smile(tmp_path: Path) -> Path:
    picture = Image.new("RGB", (30, 20))
    ImageDraw.Draw(picture).rectangle((6, 4, 11, 9), fill="yellow")
    picture.save(tmp_path / "smile.png")
    return tmp_path / "smile.png"


def test_a_picture_is_dragged_in_and_seen_as_the_circuit_will(opened, live, smile, tmp_path):
    page = opened("#/new", allowed=("422", "willReadFrequently"))
    page.click("[value=own]")
    page.drop(smile, ".own .drop")
    page.see("30 cells wide, 20 high, 36 on", ".preview")
    pixel = "[...document.querySelector('.sheet canvas').getContext('2d').getImageData({}, {}, 1, 1).data]"
    assert page.js(pixel.format(8, 6)) == [255, 255, 0, 255]
    assert page.js(pixel.format(2, 2)) == [0, 0, 0, 255]
    invert = "[...document.querySelectorAll('.tools button')].find((each) => each.innerText === 'Invert it').click()"
    page.js(invert)
    page.see("600 on", ".preview")  # the file is read again: what is yellow stays so
    page.js(invert)
    page.see("36 on", ".preview")
    say(page, {"size": "15x10"})
    page.see("15 cells wide, 10 high, 9 on", ".preview")
    no_picture = tmp_path / "note.png"
    no_picture.write_text("no picture")
    page.drop(no_picture, ".own .drop")
    page.see("is not an image", ".preview .error")
    page.drop(smile, ".own .drop")
    page.wait("document.querySelector('.preview .error').hidden")
    say(page, {"name": "a square", "priority": "-10"})
    page.click(".preview button")
    page.see("a square", "h1")
    (job,) = live.store.jobs("ann", text="a square")
    live.store.ask(job.id, "cancel")
    task = job.config["task"]
    assert (task["width"], task["height"], task["picture"][3]) == (15, 10, "...333.........")


def test_a_photograph_is_scaled_down_and_grown_by_a_preset_of_pictures(opened, live, tmp_path):
    """The form begins with a board, which has no colours; the job is called like the file."""
    photograph = tmp_path / "mushroom.png"
    Image.new("RGB", (300, 150), "red").save(photograph)
    page = opened("#/new")
    page.click("[value=own]")
    page.drop(photograph, ".own .drop")
    page.see("32 cells wide", ".preview")
    page.click("[name=seeds]")
    page.see("Trials\n8", ".preview")
    page.click("[name=seeds]")
    page.wait("!document.querySelector('.preview').innerText.includes('Trials')")
    page.click(".preview button")
    page.see("mushroom", "h1")
    (job,) = live.store.jobs("ann", text="mushroom")
    live.store.ask(job.id, "cancel")
    assert job.config["name"] == "colored-g"
    assert job.request["until_solved"]


def test_a_film_is_dropped_and_its_rule_is_to_be_learned(opened, live, tmp_path):
    (tmp_path / "gliders.gif").write_bytes(gif(frames(6)))
    page = opened("#/new", allowed=("422",))
    page.click("[name=kind][value=film]")
    page.see("Drop a recording or samples first.", ".preview")
    assert not page.js("document.querySelector('.preview .error').checkVisibility()")  # nothing was done wrong
    page.click(".film .chip")
    page.see("19 samples, 16 cells wide, 16 high", ".preview")
    page.drop(tmp_path / "gliders.gif", ".film .drop")
    page.see("5 samples, 8 cells wide, 8 high", ".preview")
    say(page, {"engine": "gpu:9"})
    page.click(".preview .primary")
    page.see("gliders", "h1")
    (job,) = live.store.jobs("ann", text="gliders")
    assert job.config["data"]["samples"] == 5
    page.js(f"location.hash = '#/new?from={job.id}'")  # no worker has begun with it
    page.see("5 samples, 8 cells wide, 8 high", ".preview")
    page.click(".preview .primary")
    page.see("gliders", "h1")
    again = next(each for each in live.store.jobs("ann", text="gliders") if each.id != job.id)
    assert live.store.job(again.id).options == live.store.job(job.id).options
    assert (list(live.store.job(job.id).options), again.options) == (["data"], {})  # a list leaves them out
    live.store.delete(job.id)
    live.store.delete(again.id)


def test_table_is_dropped_and_its_last_column_is_learned(opened, live, tmp_path):
    (tmp_path / "points.csv").write_bytes(CSV)
    page = opened("#/new", allowed=("422",))
    page.click("[name=kind][value=table]")
    page.see("Drop a table first.", ".preview")
    page.drop(tmp_path / "points.csv", ".question > .stacked:not([hidden]) .drop")
    page.see("kind, one of 2, from 2 numbers", ".preview")
    assert not page.js("document.querySelector('[name=sure][value=solved]').checkVisibility()")
    page.fill("[name=label]", "color")
    page.see("there is no column 'color'", ".preview .error")
    page.fill("[name=label]", "kind")
    say(page, {"engine": "cpu", "set.logic.widths": "8, 8"})
    page.fill("[name=epochs]", "200")
    page.see("200", ".preview")
    page.click(".preview .primary")
    page.see("points", "h1")
    page.see("% on rows held out", ".job-head")
    page.see("Accuracy", ".learning")
    page.js(f"location.hash = '#/new?from={live.store.jobs('ann', text='points')[0].id}'")
    page.see("kind, one of 2, from 2 numbers", ".preview")


def test_two_clicks_lead_from_an_empty_server_to_a_solved_checkerboard(browser, tmp_path):
    with serving(tmp_path) as empty, Supervisor(tmp_path, ["cpu"]):
        page = browser.page()
        page.goto(f"{empty.address}/#token={ANN}")
        page.click(".empty .button")
        assert ANN not in page.js("location.href")
        page.see("16 cells wide", ".preview")  # above the button, which it moves
        page.click(".preview .primary")
        page.wait("document.querySelector('.job-head .pill')?.innerText === 'Solved'")
        page.wait("document.querySelector('.living')?.checkVisibility()")
        assert not page.js("document.querySelector('.automaton').checkVisibility()")  # it is shown once
        assert page.text("h1") == "checkerboard-small"
        page.close()


def test_a_picture_is_drawn_by_mouse_and_keys(opened, live):
    page = opened("#/new", allowed=("willReadFrequently",))
    page.click("[value=own]")
    page.see("12 cells wide, 12 high", ".preview")
    page.js("[...document.querySelectorAll('.tools button')].find((each) => each.innerText === 'Clear').click()")
    page.see("Draw something first.", ".preview")
    assert page.js("document.querySelector('.preview .primary').disabled")
    page.click(".own canvas")
    page.tab_to("The target")
    page.press("2", "ArrowRight", "Enter")
    page.see("12 cells wide, 12 high, 2 on", ".preview")
    page.click(".preview .primary")
    page.see("my image", "h1")
    (job,) = live.store.jobs("ann", text="my image")
    live.store.ask(job.id, "cancel")
    assert sorted("".join(job.config["task"]["picture"]).replace(".", "")) == ["2", "7"]


@pytest.mark.parametrize("rule", ["B36/S23", "110", "B13/S01V", "B2/S34H", rules.table("B3/S23")])
def test_a_rule_runs_while_it_is_chosen(opened, rule):
    page = opened("#/new")
    entries = rules.table(rule) if isinstance(rule, str) else rule
    text = rule if isinstance(rule, str) else np.packbits(rule).tobytes().hex()
    found = page.js(f"import('/static/growth.js').then(({{ tableOf }}) => [...tableOf('{text}')])")
    assert found == entries.tolist()
    page.click("[name=kind][value=rule]")
    page.click("[aria-label='Rules to try'] .chip")
    page.see("One step of B3/S23", ".preview")
    page.fill("[name=rule]", text)
    page.see("One step of", ".preview")
    shot = "document.querySelector('.preview canvas').toDataURL()"
    first = page.js(shot)
    page.wait(f"{shot} !== {json.dumps(first)}")


def test_a_wrong_field_is_marked_and_undone(opened):
    page = opened("#/new", allowed=("422",))
    say(page, {"set.optimizer.lr": "fast"})
    page.see("optimizer.lr must be", ".preview .error")
    assert page.js("[...document.querySelectorAll('[aria-invalid]')].map((e) => e.name)") == ["set.optimizer.lr"]
    page.click("[aria-label='Undo the change of optimizer.lr']")
    page.wait("document.querySelector('.preview .error').hidden && !document.querySelector('[aria-invalid]')")


def test_every_field_of_a_configuration_can_be_set(opened, live):
    page = opened("#/new", allowed=("422",))
    page.see("MB", ".preview")
    with live.client() as client:
        told, agents = ([each["path"] for each in client.get(f"/fields?of={kind}").json()["fields"]]
                        for kind in ("automata", "agents"))  # fmt: skip
    # Those two sections come with samples, and a form brings none.
    wanted = [path for path in told if not path.startswith(("data.", "plugin."))]
    fields = "[...document.querySelectorAll(\".more [name^='set.']\")]"
    shown = f"{fields}.filter((e) => e.checkVisibility()).map((e) => e.name)"
    page.js("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.js("new Promise(requestAnimationFrame)")
    assert sorted(page.js(shown)) == sorted(f"set.{path}" for path in wanted)
    page.click("[name=kind][value=task]")
    page.click("[value=cartpole]")
    seen = set(page.js(shown))
    assert seen <= {f"set.{path}" for path in agents}
    assert {f"set.{path}" for path in agents if path.count(".") == 0} <= seen
    assert not any(path.startswith("set.table.") for path in seen)
    assert {"seed", "model.update.widths", "train.fire_rate", "task.picture"} < set(wanted)
    rows = "[name='set.logic.thresholds']"
    assert json.loads(f"[{page.js(f'document.querySelector(`{rows}`).value')}]") == POLE
    page.fill(rows, "[1, 0],[0, 1]")
    page.see("thresholds must be rows of at most logic.bits = 7 finite numbers", ".preview .error")


def test_a_copy_is_edited(opened, live, trained):
    page = opened(f"#/new?from={trained}")
    say(page, {"set.seed": "24", "priority": "-10"})
    page.see("6×5", ".preview")
    page.click(".preview button")
    page.see("tiny", "h1")
    page.js("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.see("24", ".facts")
    copy = live.store.jobs("ann")[0]
    assert copy.name == live.store.job(trained).name
    for fields in ({"population": 2, "stop_when_solved": 2}, {"restarts": 1, "stop_when_solved": 1},
                   {"until_solved": True, "within": "90s", "stop_when_solved": 1}):  # fmt: skip
        job = live.store.job(submitted(live, name="all of it", engine="gpu:9", priority=3, **fields))
        page.js(f"location.hash = '#/new?from={job.id}'")
        page.wait("document.querySelector('[name=priority]')?.value === '3'")
        page.see("6×5", ".preview")
        page.click(".preview button")
        page.see("all of it", "h1")
        again = live.store.jobs("ann")[0]
        assert (again.id != job.id, again.spec()) == (True, job.spec())
        page.js("location.hash = '#/'")  # or its page might ask for the events of a job that is gone
        page.see("Jobs", "h1")
        live.store.delete(job.id)
        live.store.delete(again.id)
    assert copy.config == live.store.job(trained).config | {"seed": 24}


def test_without_a_mouse(opened, live):
    page = opened()
    page.tab_to("New job")
    page.tab_to("New job")  # the one in the headline, after the one in the navigation
    page.press("Enter")
    page.see("New job", "h1")
    page.tab_to("Board")
    page.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert page.focused().startswith("Lizard")
    page.see("4,540", ".preview")
    page.tab_to("More")
    page.press("Enter")
    page.tab_to("Find a setting")
    page.type("the job's name")
    page.tab_to("Name and place")
    page.tab_to("The job's name")
    page.type("by keys")
    page.tab_to("Submit")
    page.press("Enter")
    page.see("by keys", "h1")
    page.tab_to("Stop")
    page.press("Space")
    page.see("Cancelled", ".job-head .pill")
    assert live.store.jobs("ann", text="by keys")[0].status == "cancelled"


def test_curves_are_zoomed_and_read_off_by_keys_and_mouse(opened, trained):
    page = opened(f"#/jobs/{trained}")
    shown = ".curves output"
    page.wait("document.querySelectorAll('.curves .dot.hard').length === 2 * 31")
    page.see("epochs 0 to 1,500", shown)
    page.tab_to("Curves of the soft")
    page.press("+")
    low, high = (float(each.replace(",", "")) for each in page.text(shown).split()[1::2])
    assert 0 < low < high < 1500
    values = page.text(".curves .legend")
    page.press("0", "ArrowLeft")
    page.see("epoch 1,485", shown)
    page.press("Shift+ArrowLeft", "Shift+ArrowLeft")
    page.see("epoch 1,185", shown)
    page.wait(f"document.querySelector('.curves .legend').innerText !== {json.dumps(values)}")
    page.press("Escape")
    page.see("epochs 0 to 1,500", shown)
    x, y = page.middle(".curves .chart")
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-400)
    page.wait(f"document.querySelector('{shown}').innerText !== 'epochs 0 to 1,500'")
    page.click(".adjust summary")
    page.see("Show all", ".adjust")
    line = page.js("document.querySelector('.curves .line.soft').getAttribute('d')")
    page.click(".curves [aria-pressed]")
    page.wait(f"document.querySelector('.curves .line.soft').getAttribute('d') !== {json.dumps(line)}")


def choose(page: Page, label: str, option: str) -> None:
    found = f"[...document.querySelectorAll('label')].find((each) => each.textContent.startsWith({json.dumps(label)}))"
    page.js(f"""{{ const list = {found}.querySelector("select");
        list.value = [...list.options].find((each) => each.text === {json.dumps(option)}).value;
        list.dispatchEvent(new Event("change")); }}""")


def test_runs_over_each_other(opened, live, trained):
    other = submitted(live, population=2)
    ended(live.store, other)
    page = opened()
    page.click("[aria-pressed]:not(#alerts)")
    for job in (trained, other):
        page.click(f"[data-id='{job}'] [type=checkbox]")
    page.see("Compare 2 runs")
    page.click(".selection .button")
    page.see("Compare runs", "h1")
    thick = ", ".join(f".curves .line.run-{run}:not(.thin)" for run in (0, 1))
    page.wait(f"document.querySelectorAll('{thick}').length === 4")
    assert page.js("document.querySelectorAll('.compared tbody tr').length") == 2
    page.see("population\t1\t2", ".settings")
    assert "optimizer.lr" not in page.text(".settings")
    lines = "document.querySelectorAll('.curves .line').length"
    before = page.js(lines)
    page.click(".compared tbody tr:last-child [type=checkbox]")
    page.wait(f"{lines} < {before}")
    page.click(".compared tbody tr:last-child [type=checkbox]")
    page.wait(f"{lines} === {before}")
    assert page.js("document.querySelectorAll('.curves .legend li').length") == 2 + 2  # one for each run
    choose(page, "Show ", "soft loss")
    page.wait(f"{lines} < {before}")
    choose(page, "over ", "seconds")
    page.see("seconds 0 to", ".curves output")
    choose(page, "over ", "epochs")
    page.see("epochs 0 to 1,500", ".curves output")
    line = page.js("document.querySelector('.curves .line.run-0').getAttribute('d')")
    choose(page, "Smooth over ", "50 epochs")
    page.wait(f"document.querySelector('.curves .line.run-0').getAttribute('d') !== {json.dumps(line)}")
    page.click(".compared tbody tr:last-child button")
    page.wait("document.querySelectorAll('.compared tbody tr').length === 1")


def test_devices(opened, live):
    page = opened("#/devices")
    page.see("cpu", ".device")
    page.wait("/[0-9.]+ MB/.test(document.querySelector('.device').innerText)")
    page.see("Free", ".device .pill")


def test_jobs_are_searched_and_a_name_is_never_markup(opened, live):
    name = "<img src=x onerror=alert(1)> & so on"
    job, _ = live.store.submit("ann", JobSpec("train", name, short_config().to_dict(), engine="gpu:9"))
    page = opened()
    page.see(name, ".jobs")
    page.see("No worker offers the engine gpu:9: the workers offer auto, cpu, reference.", ".jobs")
    page.fill("[type=search]", "so on")
    page.wait("document.querySelectorAll('.jobs li.job').length === 1")
    page.fill("[type=search]", "nothing is called so")
    page.see("No matching jobs")
    live.store.delete(job.id)


def test_several_jobs_are_found_sorted_and_steered_at_once(opened, live):
    ids = {name: submitted(live, name=name, engine="gpu:9") for name in ("lot b", "lot a", "lot c")}
    page = opened()
    page.fill("[type=search]", "LOT")
    page.wait("document.querySelectorAll('.jobs li.job').length === 3")
    page.js("document.querySelector('[name=sort]').focus()")
    page.press("B")
    found = "[...document.querySelectorAll('.jobs .name')].map((each) => each.innerText)"
    page.wait(f"{found}.join() === 'lot a,lot b,lot c'")
    page.click("[aria-pressed]:not(#alerts)")
    for job in (ids["lot a"], ids["lot b"]):
        page.click(f"[data-id='{job}'] [type=checkbox]")
    page.see("2 jobs chosen", ".selection")
    page.js("[...document.querySelectorAll('.selection button')].find((e) => e.innerText === 'Tag 2 jobs').click()")
    page.fill("dialog input", "the lot, of two")
    page.press("Enter")
    for name in ("lot a", "lot b"):
        page.see("the lot\nof two", f"[data-id='{ids[name]}'] .tags")
    assert live.store.job(ids["lot b"]).tags == ["the lot", "of two"]
    page.js("document.querySelector('[name=tag]').focus()")
    page.press("o")
    page.wait("document.querySelectorAll('.jobs li.job').length === 2")
    page.js("document.querySelector('[name=tag]').focus()")
    page.press("ArrowUp", "ArrowUp", "ArrowUp")
    page.wait("document.querySelectorAll('.jobs li.job').length === 3")
    page.click(".selection button:not([hidden])")
    page.see("Resume 2 jobs", ".selection")
    assert [live.store.job(each).status for each in ids.values()] == ["paused", "paused", "queued"]
    page.click(".selection .danger")
    page.see("removed from the server with all files", "dialog")
    page.click("dialog .danger")
    page.wait("document.querySelector('.selection').hidden")
    assert {each.id for each in live.store.jobs("ann")} & set(ids.values()) == {ids["lot c"]}
    page.click(f"[data-id='{ids['lot c']}'] [type=checkbox]")
    page.fill("[type=search]", "nothing is called so")
    page.see("No matching jobs")
    assert page.js("document.querySelector('.selection').hidden")  # nothing is done with what is not seen
    page.fill("[type=search]", ids["lot c"])
    page.wait("document.querySelectorAll('.jobs li.job').length === 1")
    live.store.edit(ids["lot c"], name="found by its id")  # what changes stays where it was found
    page.see("found by its id", ".jobs")
    live.store.delete(ids["lot c"])


NOTIFICATIONS = """
    window.told = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() { window.asked = true; return (Notification.permission = "granted"); }
        constructor(title, { body, tag }) { window.told.push([title, body, tag]); }
    };
"""


def test_the_end_of_a_job_is_notified_once_it_was_asked_for(opened, live):
    job = submitted(live, name="asked for", engine="gpu:9")
    page = opened()
    page.see("asked for", ".jobs")
    assert page.text("#alerts") == "Notify me"
    page.js(NOTIFICATIONS)
    page.click("#alerts")
    page.see("Notifying", "#alerts")
    page.js("location.hash = '#/new'")  # wherever one is
    live.store.ask(submitted(live, engine="gpu:9"), "cancel")
    with closing(Presence(live.store.folder, "by-hand")):
        live.store.register_worker("by-hand", "gpu:9", "", 1, ["gpu:9"])
        lease = live.store.claim("by-hand", "gpu:9", {"gpu:9"}, 1000)[1]
        live.store.finish(job, lease, "done", hard_loss=0, solved=1, progress=7)
    page.wait(f"window.told.some(([_title, _body, tag]) => tag.startsWith('{job}'))")
    live.store.edit(job, name="a change, and no other end")
    page.js("location.hash = '#/'")
    page.see("a change, and no other end", ".jobs")
    told = [(title, body) for title, body, tag in page.js("window.told") if tag.startswith(job)]
    assert told == [("asked for", "Solved")]
    assert page.js("window.asked")
    page.click("#alerts")
    assert page.text("#alerts") == "Notify me"
    live.store.unregister_worker("by-hand")
    live.store.delete(job)


def test_a_drawing_opens_alone_and_runs_nothing(browser, live, trained, cookie):
    text = "<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/><script>document.title = 'ran'</script>"
    (live.store.job_folder(trained).run / "drawn.svg").write_text(text + "</svg>")
    page = browser.page()
    page.call("Network.setCookie", name=COOKIE, value=cookie, url=live.address)
    page.goto(f"{live.address}/api/v1/jobs/{trained}/files/drawn.svg")
    page.wait("document.querySelector('svg > rect')")
    assert page.js("document.title") != "ran"
    page.close()
    (live.store.job_folder(trained).run / "drawn.svg").unlink()


def test_an_operator_sees_whose_each_job_is_and_chooses_an_owner(browser, tmp_path):
    tokens = Tokens({"ann": ANN, "ben": BEN}, {"ann": ["operator"]})
    settings = ServeSettings(caps=Caps(owner_quota=10**9))
    with serving(tmp_path, settings, tokens=tokens) as live:
        live.store.register_worker("cpu-1", "cpu", "", 1, ["auto", "cpu"])
        for owner, name in (("ann", "hers"), ("ben", "his"), ("ben", "his other")):
            live.store.submit(owner, spec_of(short_config(), name=name))
        page = browser.page()
        sign_in(page, live.address)
        page.wait("document.querySelectorAll('.jobs .owner').length === 2")
        page.see("2 owners have 3 jobs, which take", "main")
        for words in ("next", "position 2 in the queue", "position 3 in the queue"):
            page.see(words, ".jobs")
        page.js("document.querySelector('[name=owner]').focus()")
        page.press("b")
        page.wait("document.querySelectorAll('.jobs li.job').length === 2")
        page.see("ben has 2 jobs, which take", "main")
        page.see("of 1 GB.", "main")
        live.store.submit("ann", spec_of(short_config(), name="hers too"))
        live.store.submit("ben", spec_of(short_config(), name="his third"))
        page.see("his third", ".jobs")
        assert "hers too" not in page.text(".jobs")
        assert all(UNSIGNED in problem for problem in page.problems())
        page.close()
        page = browser.page()
        sign_in(page, live.address, BEN)
        page.see("You have 3 jobs, which take", "main")
        assert page.js("document.querySelectorAll('.owner, [name=owner]').length") == 0
        page.close()


def test_a_long_queue_comes_page_by_page_what_runs_first(opened, live):
    first, _ = live.store.submit("ann", spec_of(short_config(epochs=200_000)))
    reached(live.store, first.id, 50)
    waiting = [submitted(live, engine="gpu:9") for _ in range(35)]
    page = opened()
    rows = "document.querySelectorAll('.jobs li.job')"
    page.wait(f"{rows}.length === 31")
    assert page.js(f"{rows}[0].dataset.id") == first.id
    page.click(".middle button")
    page.wait(f"{rows}.length >= 36")
    assert page.js(f"new Set([...{rows}].map((row) => row.dataset.id)).size === {rows}.length")
    page.js("document.querySelector('[name=status]').focus()")
    page.press("R")
    page.wait(f"{rows}.length === 1")
    page.click(".jobs [data-action=cancel]")
    page.see("No matching jobs")
    for each in waiting:
        live.store.delete(each)


def test_a_lost_server_is_said_and_found_again(browser, tmp_path):
    with serving(tmp_path) as first:
        port = int(first.address.rpartition(":")[2])
        page = browser.page()
        sign_in(page, first.address)
        page.see("Live", "#connection")
    page.see("Reconnecting", "#connection")
    page.see("The connection to the server was lost", "#offline")
    with serving(tmp_path, port=port) as second:
        page.see("Live", "#connection")
        page.wait("document.getElementById('offline').hidden")
        second.store.submit("ann", spec_of(short_config()))
        page.see("tiny", ".jobs")
    page.see("Reconnecting", "#connection")
    page.js("location.hash = '#/new'")
    page.see("cannot be reached", ".error")
    with serving(tmp_path, port=port) as third:
        page.see("Board", ".presets")
        page.wait("document.querySelector('main > .error').hidden")
        job = third.store.jobs("ann")[0].id
    page.js(f"location.hash = '#/jobs/{job}'")
    page.see("cannot be reached", "main")
    with serving(tmp_path, port=port):
        page.see("tiny", "h1")
        page.see("Live", "#connection")
        page.click(".files-of summary")
        page.see("No files yet", ".files")
        page.wait("[...document.querySelectorAll('.error')].every((each) => each.hidden)")
        page.close()


PLACES = {
    "#/": (".jobs", "tiny"),
    "#/new": (".preview", "MB"),
    "#/devices": (".device", "Memory"),
    "#/compare/": ("main", "Nothing to compare"),
    "#/jobs/{}": (".job-head", "1,500 epochs"),
    "#/compare/{}": (".compared", "tiny"),
}
"""Addresses of the views, each with a selector and a text that show that it is there."""


def visit(page: Page, place: str, job: str) -> None:
    """Until it has what it shows, and every part of it is open."""
    selector, text = PLACES[place]
    page.js(f"location.hash = {json.dumps(place.format(job))}")
    page.see(text, selector)
    page.js("document.querySelectorAll('details').forEach((each) => each.open = !each.matches('.menu'))")
    if selector == ".job-head":
        page.see("metrics.csv", ".files")
        page.see("at epoch 1,500", ".gates")
    page.js("new Promise((done) => setTimeout(done, 300))")


def test_nothing_is_wider_than_a_phone(opened, trained):
    page = opened(width=360, height=740)
    for place in PLACES:
        visit(page, place, trained)
        assert page.js("document.documentElement.scrollWidth") <= 360, place


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_in_both_schemes(opened, trained, dark):
    page = opened(dark=dark)
    red = page.js("Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])")
    assert (red < 64) == dark
    for place in PLACES:
        visit(page, place, trained)
        # In the dark nothing is otherwise but colours.
        assert barriers(page, *(("color-contrast", "link-in-text-block") if dark else ())) == [], place


def test_everything_that_takes_the_focus_has_a_name_and_a_role(opened, trained):
    page = opened()
    page.call("Accessibility.enable")
    for place in PLACES:
        visit(page, place, trained)
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        focusable = [
            each
            for each in nodes
            if not each["ignored"] and any(p["name"] == "focusable" and p["value"]["value"] for p in each["properties"])
        ]
        assert len(focusable) > 5
        buttons = [each["name"]["value"] for each in focusable if each["role"]["value"] == "button"]
        assert sorted(set(buttons)) == sorted(buttons), place
        for each in focusable:
            role = each["role"]["value"]
            assert role != "generic", page.call("DOM.describeNode", backendNodeId=each["backendDOMNodeId"])
            assert each["name"]["value"].strip() or role in ("RootWebArea", "main"), (place, each)
        pictures = [each for each in nodes if each["role"]["value"] in ("image", "Canvas") and not each["ignored"]]
        assert all(each["name"]["value"] for each in pictures), place
        headings = page.js(
            "[...document.querySelectorAll('h1, h2, h3')].filter((e) => e.checkVisibility()).map((e) => +e.tagName[1])"
        )
        assert headings[0] == 1
        assert all(b - a <= 1 for a, b in itertools.pairwise(headings)), (place, headings)


def test_nothing_moves_where_less_motion_is_wished(opened, live, trained):
    still, moving = opened(f"#/jobs/{trained}", still=True), opened(f"#/jobs/{trained}")
    moving.see("Pause", ".transport")
    still.see("Play", ".transport")


def test_events_are_understood_however_they_are_cut(opened):
    stream = 'id: 7\\n\\n: heart\\r\\nevent: job\\r\\nid: 8\\ndata: {"a":\\ndata: 1}\\n\\nevent: end\\ndata: {}\\n\\n'
    page = opened()
    for size in (1, 2, 5, 1000):
        found = page.js(f"""import("/static/events.js").then(({{ parser }}) => {{
            const place = {{ last: "", over: false }}, heard = [];
            const parse = parser(place, {{ job: (data) => heard.push(data), end: () => heard.push("end") }});
            const text = '{stream}';
            for (let i = 0; i < text.length; i += {size}) parse(text.slice(i, i + {size}));
            return [place, heard];
        }})""")
        assert found == [{"last": "8", "over": True}, [{"a": 1}, "end"]]


def test_a_thinned_curve_keeps_its_peaks(opened):
    page = opened()
    found = page.js("""import("/static/scale.js").then(({ thinned }) => {
        const points = Array.from({ length: 100000 }, (_, x) => [x, x === 77777 ? 1000 : x === 22222 ? -1000 : x % 7]);
        const kept = thinned(points, 10000, 90000, 500);
        const xs = kept.map(([x]) => x);
        const ys = kept.map(([, y]) => y);
        return { length: kept.length, most: Math.max(...ys), least: Math.min(...ys),
            sorted: xs.every((x, i) => i === 0 || xs[i - 1] < x), ends: [xs[0], xs.at(-1)] };
    })""")
    assert found["length"] <= 4 * 502
    assert (found["most"], found["least"], found["sorted"]) == (1000, -1000, True)
    assert found["ends"] == [9999, 90001]


def test_a_logarithmic_scale_goes_down_to_the_data(opened):
    page = opened()
    found = page.js("""import("/static/scale.js").then(({ SCALES, floorOf, rangeOf, smoothed }) => {
        const { forward, ticks } = SCALES.log;
        return { floor: floorOf([0, 0.02, 300], 400), high: floorOf([500, 900], 1000), none: floorOf([0], 1),
            ticks: ticks(400, 0.01), apart: [0, 0.01, 0.1, 1, 10].map((value) => forward(value, 0.01)),
            below: rangeOf([-500, -60], "linear"), around: rangeOf([-3, 20], "linear"), above: rangeOf([2, 9], "log"),
            far: floorOf([1e-30, 1], 1), smooth: smoothed([[1, 2], [2, 4], [3, 6], [13, 0]], 2) };
    })""")
    assert found["floor"] == pytest.approx(0.01)
    assert (found["high"], found["none"]) == (100, 1)
    assert found["far"] == pytest.approx(1e-8)
    assert found["ticks"] == pytest.approx([0, 0.01, 0.1, 1, 10, 100])
    assert found["apart"] == pytest.approx([0, 1, 2, 3, 4])
    assert (found["below"], found["around"]) == ([-500, 0], pytest.approx([-3, 21]))
    assert found["above"] == pytest.approx([0, 9 * 1.3])
    assert found["smooth"] == [[1, 2], [2, 3], [3, 5], [13, 0]]


def test_a_chart_is_saved_as_it_is_seen(opened, trained):
    page = opened(f"#/jobs/{trained}")
    page.wait("document.querySelectorAll('.curves .dot.hard').length === 2 * 31")
    page.js("document.querySelectorAll('.figure details').forEach((each) => (each.open = true))")
    page.wait("document.querySelectorAll('.curves .rows tbody tr').length > 3 * 31")
    names = page.js("[...document.querySelectorAll('.curves .savers button')].map((each) => each.ariaLabel)")
    assert len(names) == len(set(names)) == 6
    saved = page.js("""import("/static/saving.js").then(({ asSvg, asCsv }) => {
        const file = new DOMParser().parseFromString(asSvg(document.querySelector(".curves svg")), "image/svg+xml");
        return { paths: [...file.querySelectorAll("path.line")].map((each) => each.getAttribute("stroke")),
            broken: file.querySelectorAll("parsererror").length,
            csv: asCsv([["series", "epoch"], ['a "b", c', 7], ["=1+1", 0.5]]) };
    })""")
    assert saved["csv"] == 'series,epoch\n"a ""b"", c",7\n\'=1+1,0.5\n'
    assert saved["broken"] == 0
    assert saved["paths"]
    # Outside of the page there is no style sheet: colours are numbers, not names.
    assert all(each.startswith("rgb(") for each in saved["paths"])
    shot = page.js("""import("/static/saving.js").then(({ asPng }) => asPng(document.querySelector(".curves svg")))
        .then((blob) => blob.arrayBuffer()).then((bytes) => [...new Uint8Array(bytes).slice(1, 4)])""")
    assert bytes(shot) == b"PNG"


def test_a_list_that_comes_late_does_not_undo_what_the_stream_said(opened, live):
    job, _ = live.store.submit("ann", spec_of(short_config(), engine="gpu:9"))
    page = opened("#/devices")
    page.js("""(() => {
        const real = window.fetch;
        window.fetch = async (address, ...rest) => {
            const answer = await real(address, ...rest);
            if (String(address).includes("/jobs?")) {
                window.asked = (window.asked ?? 0) + 1;
                await new Promise((done) => (window.letGo = [...(window.letGo ?? []), done]));
            }
            return answer;
        };
    })()""")
    page.js("location.hash = '#/'")
    page.wait("window.asked === 2")
    live.store.edit(job.id, name="meanwhile renamed")
    page.see("meanwhile renamed", ".jobs")
    page.js("window.letGo.forEach((go) => go())")
    page.js("new Promise((done) => setTimeout(done, 200))")
    page.see("meanwhile renamed", ".jobs")
    live.store.delete(job.id)


def test_what_the_page_says_twice_is_as_the_library_has_it(opened):
    page = opened(allowed=("willReadFrequently",))
    found = page.js(
        """Promise.all(
        ["gates", "pixels", "progress", "jobs-view"].map((name) =>
            import(`/static/${name}.js`))
    ).then(([gates, pixels, progress, jobs]) => {
        const drawn = (channels) => {
            const canvas = document.createElement("canvas"), width = 2 ** channels;
            const bits = Array.from({ length: channels * width }, (_, i) => (i % width) >> Math.floor(i / width) & 1);
            pixels.paint(canvas, { height: 1, width, channels, bits });
            return [...canvas.getContext("2d").getImageData(0, 0, width, 1).data];
        };
        const bits = (task) => [...pixels.targetOf(task).bits];
        return {
            families: gates.FAMILIES,
            statuses: Object.keys(progress.STATUSES), kinds: Object.keys(progress.KINDS),
            sorts: Object.keys(jobs.SORTS),
            read: bits({ target: "picture", picture: [ALPHABET], loss_channels: 6 }),
            board: bits({ target: "checkerboard", height: 6, width: 8 }),
            drawn: [1, 2, 3, 4, 6].map(drawn),
            hexagons: (({ wide, high, cells }) => ({ wide, high, cells: [...cells] }))(pixels.hexagons(3, 4)),
        };
    })""".replace("ALPHABET", json.dumps(text_picture.ALPHABET))
    )
    assert found["read"] == text_picture.decode([text_picture.ALPHABET], 6).transpose(2, 0, 1).ravel().tolist()
    board = tasks.target(presets.checkerboard().with_(task={"height": 6, "width": 8}).task)
    assert board is not None
    assert found["board"] == board[..., 0].astype(int).ravel().tolist()
    for channels, seen in zip([1, 2, 3, 4, 6], found["drawn"], strict=True):
        cells = (np.arange(2**channels)[:, None] >> np.arange(channels) & 1).astype(np.uint8)
        assert np.reshape(seen, (-1, 4))[:, :3].tolist() == plots.colors(cells).tolist(), channels
    kinds = {each["style"]: [gates.NAMES[gate] for gate in each["gates"]] for each in found["families"]}
    assert sorted(name for names in kinds.values() for name in names) == sorted(gates.NAMES)
    names = {"wires": ["A", "B"], "nots": ["NOT B", "NOT A"], "xors": ["XOR", "XNOR"], "constants": ["FALSE", "TRUE"]}
    assert kinds == kinds | names
    assert {gates.TRUTH[gates.NAMES.index(name)].sum() for name in kinds["ands"]} == {1}
    assert {gates.TRUTH[gates.NAMES.index(name)].sum() for name in kinds["ors"]} == {3}
    assert set(found["statuses"]) == set(STATUSES)
    assert set(found["kinds"]) == {*KINDS}
    assert found["sorts"] == [*SORTS]
    cells = film.pixels_of((3, 4), 8, "hex")
    assert found["hexagons"] == {"wide": cells.shape[1], "high": cells.shape[0], "cells": cells.ravel().tolist()}


def test_a_recipe_shows_its_fields_and_restarts_are_asked_for(opened, live):
    page = opened("#/new")
    page.click("[name=sure][value=counted]")
    page.js("document.querySelectorAll('details').forEach((each) => each.open = true)")
    page.js("""{ const list = document.querySelector("select[name=preset]"); list.value = "checkerboard";
        list.dispatchEvent(new Event("input", { bubbles: true })); }""")
    page.js("document.querySelector('[name=recipe]').focus()")
    page.press("r")
    page.wait("document.querySelector(\"[name='set.hardening.share']\").value > 0")
    page.wait("document.querySelector(\"[name='set.optimizer.lr']\").value === '0.2'")
    say(page, {"set.optimizer.lr": "0.1", "name": "by recipe", "restarts": "2", "engine": "gpu:9"})
    page.click(".preview button")
    page.see("by recipe", "h1")
    job = live.store.jobs("ann", text="by recipe")[0]
    wanted = recipes.applied("robust", presets.checkerboard()).with_(optimizer={"lr": 0.1})
    assert (job.config, job.request) == (wanted.to_dict(), {"restarts": 2, "stop_when_solved": 1})
    live.store.delete(job.id)


def test_attempts_are_shown_and_in_the_end_the_best(opened, live):
    job = live.store.submit("ann", spec_of(flat(1000), restarts=1, stop_when_solved=1))[0].id
    page = opened(f"#/jobs/{job}")
    page.see("attempt 1, the best of 2, 200 of 1,000 epochs", ".progress")
    page.js("document.querySelectorAll('details').forEach((each) => each.open = true)")
    page.see("Attempt 2: complete at epoch 800 with 14 wrong cells, seed 8670748", ".tries")
    page.see("epochs 0 to 1,000", ".curves output")  # one curve over both
    page.wait("document.querySelectorAll('.curves .attempt').length === 2")  # in each chart
    page.see("At epoch 200", ".automaton")
    page.see("at epoch 200", ".gates")


def test_until_it_is_solved_is_asked_for_and_its_end_is_told(opened, live):
    page = opened("#/new", allowed=("422", "404"))
    disabled = "['restarts', 'within', 'init_from'].map((n) => document.querySelector(`[name=${n}]`).disabled)"
    page.see("MB", ".preview")
    assert page.js(disabled) == [True, False, True]
    page.click("[name=sure][value=counted]")
    assert page.js(disabled) == [False, True, False]
    page.click("[name=sure][value=solved]")
    page.fill("[name=within]", "soon")
    page.see("Expected a time or a number of epochs", ".preview .error")
    page.fill("[name=within]", "60s")
    page.see("at most 60s", ".preview")
    say(page, {"name": "until", "engine": "gpu:9"})
    page.click(".preview button")
    page.see("until", "h1")
    job = live.store.jobs("ann", text="until")[0]
    assert job.request == {"until_solved": True, "within": "60s", "stop_when_solved": 1}
    with closing(Presence(live.store.folder, "by-hand")):
        lease = live.store.claim("by-hand", "gpu:9", {"gpu:9"}, 1000)[1]
        made = [attempts.Attempt(1, None, 23, 500, "", "given up", 50, 9), attempts.Attempt(2, None, 7, 500, "")]
        result = {"attempts": [asdict(each) for each in made]}
        so_far = {"attempt": 2, "progress": 20, "hard_loss": 31, "compared": 256, "trained_s": 12, "result": result}
        live.store.heartbeat(job.id, lease, 1000, **so_far)
        told = "9 wrong cells in the best attempt so far, until solved, 12 s of at most 60 s"
        page.see(f"attempt 2, 20 of 500 epochs · {told}", ".progress")
        live.store.finish(job.id, lease, "done", attempt=1, progress=50, hard_loss=9)
    page.see("Not solved within 60 s: the best circuit has 9 wrong cells of 256", ".job-head")
    assert page.text(".job-head .pill") == "Not solved"
    page.js("location.hash = '#/'")
    page.see("Not solved within 60 s: the best circuit has 9 wrong cells of 256", f"[data-id='{job.id}']")


def test_a_page_that_comes_in_a_later_attempt_ends_with_the_best(opened, live, tmp_path):
    """Whatever the attempt had done when the page was opened: in the end everything is the best one's."""
    restarts.train(TrainRequest(config=flat(1000), restarts=1), Placement(open_engine("cpu")), tmp_path / "run")
    fields = {"engine": "gpu:9", "restarts": 1, "stop_when_solved": 1, "priority": 10}
    job = live.store.submit("ann", spec_of(flat(1000), **fields))[0].id
    shutil.copytree(tmp_path / "run", live.store.job_folder(job).whole)
    with closing(Presence(live.store.folder, "by-hand")):
        lease = live.store.claim("by-hand", "gpu:9", {"gpu:9"}, 1000)[1]
        live.store.heartbeat(job, lease, 1000, attempt=2, progress=800, goal=800, saved_progress=800)
        page = opened(f"#/jobs/{job}", allowed=("404",))  # the gates were not counted
        page.see("attempt 2 of at most 2, 800 of 800 epochs", ".progress")
        page.see("epochs 0 to 800", ".curves output")
        live.store.finish(job, lease, "done", attempt=1, progress=200, goal=1000, saved_progress=200)
    page.see("attempt 1", ".progress")
    page.see("epochs 0 to 1,000", ".curves output")
