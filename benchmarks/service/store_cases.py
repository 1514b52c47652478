"""Damage to a store that no process has open: `store_faults` checks the store after each case."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.service import jobs
from benchmarks.service.store_faults import Case, Filled, add_last, digests, digests_in, fill
from difflogic.runs import manifest
from difflogic.serve.store import files, job_file, machine
from difflogic.serve.store.files import JOBS, LOGS, STORE
from difflogic.serve.store.job_file import NAME
from difflogic.serve.store.store import Store

REBUILT = "was rebuilt from the folders of"
OLDER = "is older than the folders of"


def database(filled: Filled, ending: str = "") -> Path:
    return filled.folder / f"{STORE}{ending}"


def removed(filled: Filled, *kept: str) -> None:
    for ending in ("", *LOGS):
        if ending not in kept:
            database(filled, ending).unlink(missing_ok=True)


def in_use(filled: Filled, then: Callable[[Filled, Path], None]) -> None:
    """Pass to `then` a copy of the database and its logs as after a kill of the server."""
    store, copy = Store.open(filled.folder), filled.folder.with_name("copy")
    copy.mkdir()
    with closing(sqlite3.connect(database(filled))) as reader:
        # An open read transaction prevents a checkpoint of the log, which then contains all later writes.
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM jobs").fetchone()
        add_last(filled, store)
        for ending in ("", "-wal", "-shm"):
            shutil.copy(database(filled, ending), copy / f"{STORE}{ending}")
    store.close()
    removed(filled)
    then(filled, copy)


def put(filled: Filled, copy: Path, *endings: str) -> None:
    for ending in endings:
        shutil.copy(copy / f"{STORE}{ending}", database(filled, ending))


def wal_left(filled: Filled) -> None:
    in_use(filled, lambda filled, copy: put(filled, copy, "-wal", "-shm"))


def wal_of_another(filled: Filled) -> None:
    other = fill(filled.folder.with_name("other"))
    in_use(other, lambda other, copy: put(filled, copy, "-wal"))
    removed(filled, "-wal")


def emptied(filled: Filled) -> None:
    removed(filled)
    database(filled).touch()


def no_tables(filled: Filled) -> None:
    removed(filled)
    with closing(sqlite3.connect(database(filled))) as made:
        made.execute("CREATE TABLE a (b)")
        made.execute("DROP TABLE a")


def half(filled: Filled) -> None:
    removed(filled, "")
    os.truncate(database(filled), database(filled).stat().st_size // 2)


def zeros_inside(filled: Filled) -> None:
    with database(filled).open("r+b") as file:
        for page in range(1, database(filled).stat().st_size // 4096):
            file.seek(4096 * page)
            file.write(bytes(2048))


def text(filled: Filled) -> None:
    removed(filled)
    database(filled).write_text("Dear database, where are you?\n" * 300)


def foreign(filled: Filled) -> None:
    removed(filled)
    with closing(sqlite3.connect(database(filled))) as made:
        made.execute("CREATE TABLE bookmarks (address TEXT)")


def yesterday(filled: Filled) -> None:
    copy = shutil.copy(database(filled), filled.folder.with_name("yesterday"))
    store = Store.open(filled.folder)
    add_last(filled, store)
    store.close()
    removed(filled)
    shutil.copy(copy, database(filled))


def yesterday_with_the_log_of_today(filled: Filled) -> None:
    copy = shutil.copy(database(filled), filled.folder.with_name("yesterday"))
    with closing(sqlite3.connect(copy)) as other:
        other.execute("VACUUM")  # its pages have another order than in the log

    def mixed(filled: Filled, files: Path) -> None:
        put(filled, files, "-wal", "-shm")
        shutil.copy(copy, database(filled))

    in_use(filled, mixed)


def copied_without_its_log(filled: Filled) -> None:
    in_use(filled, lambda filled, copy: put(filled, copy, ""))


def log_cut(filled: Filled) -> None:
    def cut(filled: Filled, copy: Path) -> None:
        put(filled, copy, "", "-wal")
        os.truncate(database(filled, "-wal"), database(filled, "-wal").stat().st_size // 2)

    in_use(filled, cut)


def killed(filled: Filled) -> None:
    in_use(filled, lambda filled, copy: put(filled, copy, "", "-wal", "-shm"))


def shm_of_another(filled: Filled) -> None:
    killed(filled)
    database(filled, "-shm").write_bytes(os.urandom(32768))


def journal_of_another(filled: Filled) -> None:
    database(filled, "-journal").write_bytes(os.urandom(8192))


def record_cut(filled: Filled) -> None:
    path = filled.path("done") / NAME
    os.truncate(path, path.stat().st_size // 2)


def records_removed(filled: Filled) -> None:
    for path in (filled.folder / JOBS).glob(f"*/{NAME}"):
        path.unlink()


def record_cut_and_database_removed(filled: Filled) -> None:
    record_cut(filled)
    removed(filled)


def folder_renamed(filled: Filled) -> None:
    filled.path("done").rename(filled.folder / JOBS / "the good one")


def away_and_back(filled: Filled) -> None:
    """Remove the database and all records, which moves all folders to lost+found, then restore the database."""
    away = database(filled).rename(filled.folder.with_name("away"))
    records_removed(filled)
    store = Store.open(filled.folder)
    assert store.jobs() == []
    store.close()
    removed(filled)
    away.rename(database(filled))


def folders_swapped(filled: Filled) -> None:
    """Swap the folders of two jobs."""
    one, other, aside = filled.path("done"), filled.path("paused"), filled.folder / JOBS / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def runs_swapped(filled: Filled) -> None:
    """Swap the run folders of two jobs with different configurations."""
    store = Store.open(filled.folder)
    made = [store.submit("ann", jobs.spec_of(jobs.config(seed), name=f"seed {seed}"))[0] for seed in (1, 2)]
    for job, run_of in zip(made, reversed(made), strict=True):
        run = store.job_folder(job).run
        run.mkdir()
        (run / manifest.NAME).write_text(json.dumps({"config": run_of.config}))
    filled.note(store)
    store.close()


def deleted_and_put_back(filled: Filled) -> None:
    """Delete a job, and restore its folder from a copy."""
    copy = shutil.copytree(filled.path("cancelled"), filled.folder.with_name("copy"))
    store = Store.open(filled.folder)
    store.delete(filled.ids["cancelled"])
    store.close()
    shutil.copytree(copy, filled.path("cancelled"))
    del filled.jobs[filled.ids["cancelled"]]


def folder_copied(filled: Filled) -> None:
    shutil.copytree(filled.path("done"), filled.folder / JOBS / "the good one, a copy")


def folder_removed(filled: Filled) -> None:
    """Remove the folder of a job, which the store still lists."""
    filled.files -= digests_in(filled.path("cancelled"))
    shutil.rmtree(filled.path("cancelled"))


def strange_things(filled: Filled) -> None:
    (filled.folder / JOBS / "notes.txt").write_text("remember the milk")
    (filled.folder / JOBS / ("z" * 16)).mkdir()
    (filled.folder / JOBS / ("z" * 16) / "circuit.json").write_text("{}")
    filled.files = digests(filled.folder)


def folders_of_another_store(filled: Filled) -> None:
    """Add the job folders of another store, which are missing in the database; only --rebuild would add them."""
    other = fill(filled.folder.with_name("other"))
    for path in (other.folder / JOBS).iterdir():
        shutil.copytree(path, filled.folder / JOBS / path.name)
    filled.files = digests(filled.folder)


def folders_of_two_stores(filled: Filled) -> None:
    folders_of_another_store(filled)
    removed(filled)
    other = Filled(filled.folder.with_name("other"))
    store = Store.open(other.folder)
    other.note(store)
    store.close()
    # Jobs of the two stores have equal numbers, so those of the second store get new numbers.
    filled.jobs |= other.jobs
    for said in filled.jobs.values():
        del said["number"]


def moved(filled: Filled) -> None:
    filled.folder = filled.folder.rename(filled.folder.with_name("elsewhere"))


def readable_by_all(filled: Filled) -> None:
    for path in (filled.folder, *filled.folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def machine_file_cut(filled: Filled) -> None:
    os.truncate(filled.folder / machine.NAME, 10)


def in_child(filled: Filled, act: Callable[[Store], None]) -> None:
    """Call `act` with the store in a child process, which may end during the call."""
    child = os.fork()
    if child == 0:
        try:
            act(Store.open(filled.folder))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def killed_before_the_commit(filled: Filled) -> None:
    def act(store: Store) -> None:
        prepare = job_file.prepare

        def end(*arguments: object) -> None:
            prepare(*arguments)
            os._exit(1)

        job_file.prepare = end
        store.submit("ann", jobs.spec_of(jobs.config()))

    in_child(filled, act)


def killed_after_the_commit(filled: Filled) -> None:
    def act(store: Store) -> None:
        job_file.Prepared.publish = lambda *_: os._exit(1)
        store.edit(filled.ids["queued"], name="renamed")

    in_child(filled, act)
    filled.jobs[filled.ids["queued"]]["name"] = "renamed"


def killed_in_a_deletion(filled: Filled) -> None:
    def act(store: Store) -> None:
        files.empty = lambda *_: os._exit(1)
        store.delete(filled.ids["cancelled"])

    del filled.jobs[filled.ids["cancelled"]]
    filled.files -= digests_in(filled.path("cancelled"))
    in_child(filled, act)


def killed_before_a_deletion(filled: Filled) -> None:
    """End the process when the folder of a deleted job was moved away but its row was not deleted."""

    def act(store: Store) -> None:
        throw_away = files.throw_away
        files.throw_away = lambda *arguments: (throw_away(*arguments), os._exit(1))
        store.delete(filled.ids["cancelled"])

    in_child(filled, act)


def killed_while_it_was_made_again(filled: Filled) -> None:
    def act(store: Store) -> None:
        store.close()
        rename = Path.rename

        def end(path: Path, target: Path) -> Path:
            return os._exit(1) if Path(target).name == STORE and path.suffix == ".new" else rename(path, target)

        Path.rename = end
        Store.open(filled.folder, rebuild=True)

    in_child(filled, act)


CASES: dict[str, Case] = {
    "database removed": Case(removed, REBUILT),
    "database removed, its log left": Case(wal_left, REBUILT),
    "database removed, the log of another left": Case(wal_of_another, REBUILT),
    "database removed, a folder renamed": Case(lambda it: (removed(it), folder_renamed(it)), REBUILT),
    "database removed, a folder copied": Case(lambda it: (removed(it), folder_copied(it)), REBUILT),
    "database removed, strange things": Case(
        lambda it: (removed(it), strange_things(it)), f"in lost+found: notes.txt, {'z' * 16}."
    ),
    "database removed, a record cut": Case(record_cut_and_database_removed, "in lost+found: ", lost=("done",)),
    "database removed, store moved": Case(lambda it: (removed(it), moved(it)), REBUILT),
    "database empty": Case(emptied, "is empty, but there are folders of 8 jobs", refused=True),
    "database without tables": Case(no_tables, "is empty, but there are folders of 8 jobs", refused=True),
    "database cut in half": Case(half, "malformed", refused=True),
    "zeros in the database": Case(zeros_inside, "malformed", refused=True),
    "a text for the database": Case(text, "file is not a database", refused=True),
    "the database of another program": Case(foreign, "is the database of another program", refused=True),
    "the database of yesterday": Case(yesterday, f"{OLDER} 1 job", refused=True),
    "the database of yesterday, the log of today": Case(yesterday_with_the_log_of_today, "database", refused=True),
    "the database without its log": Case(copied_without_its_log, f"{OLDER} 1 job", refused=True),
    "the log cut in half": Case(log_cut, f"{OLDER} 1 job", refused=True),
    "database removed, folders of two stores": Case(folders_of_two_stores, REBUILT),
    "database removed, folders swapped": Case(lambda it: (removed(it), folders_swapped(it)), REBUILT),
    "folders of another store": Case(folders_of_another_store, "files without a job moved to lost+found"),
    "folders swapped": Case(folders_swapped, "2 folders moved back into place"),
    "runs swapped": Case(runs_swapped, "2 runs moved back to the right job"),
    "a folder of a deleted job": Case(deleted_and_put_back, "files without a job moved to lost+found"),
    "killed in use": Case(killed, None),
    "the shared memory of another": Case(shm_of_another, None),
    "a journal that is none": Case(journal_of_another, None),
    "a record cut": Case(record_cut, None),
    "all records removed": Case(records_removed, None),
    "a folder renamed": Case(folder_renamed, "1 folder moved back into place"),
    "a folder copied": Case(folder_copied, "moved to lost+found"),
    "database away and back": Case(away_and_back, "8 folders moved back into place"),
    "a folder removed": Case(folder_removed, "no folder was found for"),
    "strange things": Case(strange_things, "moved to lost+found"),
    "store moved": Case(moved, None),
    "open to everybody": Case(readable_by_all, None),
    "machine.json cut": Case(machine_file_cut, None),
    "killed before a commit": Case(killed_before_the_commit, None),
    "killed after a commit": Case(killed_after_the_commit, None),
    "killed in a deletion": Case(killed_in_a_deletion, None),
    "killed before a deletion": Case(killed_before_a_deletion, "1 folder moved back into place"),
    "killed while it was made again": Case(killed_while_it_was_made_again, REBUILT),
}
