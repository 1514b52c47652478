"""docs/how-to/service.md says what the code does."""

import re
from pathlib import Path

from prometheus_client import generate_latest

from difflogic.cli.commands.jobs import submit
from difflogic.cli.commands.serve import serve
from difflogic.serve import log
from difflogic.serve.api import pictures, tokens
from difflogic.serve.api.settings import Caps, ConnectionLimits
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.tokens import ROLES, Tokens
from difflogic.serve.store import files, job_file, machine, mount, records
from difflogic.serve.store.jobs import TAGS
from difflogic.serve.store.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "service.md").read_text(encoding="utf-8")
SENTENCES = " ".join(PAGE.split())


def test_its_options_exist():
    options = {name for command in (serve, submit) for option in command.params for name in option.opts}
    # Ray's own options stand behind its name.
    named = set(re.findall(r"--[a-z][a-z-]+", re.sub(r"ray start[^\n`]*|`--num-cpus 0`", "", PAGE)))
    assert named <= options
    assert {"--trusted-proxy", "--root-path", "--tls-cert", "--tls-key", "--max-jobs"} <= named


def test_its_limits_are_the_servers():
    limits, caps = ConnectionLimits(), Caps()
    for words in (
        f"a request, or the TLS handshake | {limits.request_s:g} seconds",
        f"one more for every {limits.rate >> 10} KiB received of a body",
        f"does not read its answer | {limits.write_s:g} seconds",
        f"{caps.pixels >> 20} megapixels, {pictures.PROCESSOR_S} seconds",
        f"{pictures.MEMORY >> 30} GiB of memory",
        f"the same, {pictures.MOST_CELLS:,} cells, {pictures.MOST_BYTES:,} bytes compressed",
        f"the same, {pictures.MOST_TABLE:,} bytes compressed",
        f"at most {log.MOST_LINES} lines of the same event in {log.WINDOW_S:g} seconds",
        f"until the other machine has been silent for {machine.GONE_S:.0f} seconds",
        f"less than {records.MIN_FREE_BYTES >> 20} MiB are free",
        f"set `{mount.ALLOW}=1`",
        f"`{job_file.NAME}` in each job's folder describes the job",
        f"moved to `{files.LOST}/`",
    ):
        assert words in SENTENCES
    assert TAGS.words.removeprefix("at most ").partition(" without")[0] in SENTENCES
    assert f"{tokens.LEAST} to 200 characters" in SENTENCES


def test_its_file_of_tokens_is_one(tmp_path: Path):
    (example,) = re.findall(r"```\n(# name:token.*?)```", PAGE, re.DOTALL)
    (tmp_path / "tokens").write_text(example.replace("...", "0123456789"))
    known = Tokens.of_file(tmp_path / "tokens")
    assert [known.roles(owner) for owner in ("ann", "ben", "cas")] == [set(), {"priority"}, {"operator"}]
    assert all(f"| `{role}` |" in PAGE for role in ROLES)


def test_its_counters_are_counted(tmp_path: Path):
    text = generate_latest(Telemetry(Store.open(tmp_path)).registry).decode()
    for name in re.findall(r"`(difflogic_[a-z_]+)", PAGE):
        assert f"# TYPE {name} " in text
