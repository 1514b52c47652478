"""Who is signed in on the page, and which links open a job: hashes of cookies and tokens, never these themselves.

The token of a link is `share_ID_SECRET`. It is found by its ID, and then compared as a whole, in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from difflogic.serve.store.jobs import ConflictError, UnknownShareError, new_id
from difflogic.serve.store.records import Records

SHARE = re.compile(r"share_([a-z2-7]{16})_[A-Za-z0-9_-]{20,100}")
"""The token of a link."""
MOST_SHARES = 20
"""Links of one job."""


@dataclass(frozen=True)
class Share:
    """A link that opens one job, to be read."""

    id: str
    label: str
    """For whom it is, in the owner's words."""
    created: str
    """ISO 8601 in UTC, as is `expires`."""
    expires: str | None
    """None: never."""


class Access(Records):
    """The part of a Store that says who comes in."""

    def open_session(self, digest: str, owner: str, seconds: float) -> None:
        """Keep a session under the hash of its cookie, for so long."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE expires < ?", (self.clock(),))
            connection.execute(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", (digest, owner, self.clock() + seconds)
            )

    def session_owner(self, digest: str) -> str | None:
        """The owner of a session; None where there is none, or it has expired."""
        query = "SELECT owner FROM sessions WHERE hash = ? AND expires >= ?"
        row = self.database.row(query, digest, self.clock())
        return None if row is None else str(row["owner"])

    def close_session(self, digest: str) -> None:
        self.database.write("DELETE FROM sessions WHERE hash = ?", digest)

    def share(self, job: str, label: str = "", seconds: float | None = None) -> tuple[Share, str]:
        """A new link that opens a job for so long, None: for ever; and its token, which nobody can find out again.

        Raises ConflictError where there are too many.
        """
        made = new_id()
        token = f"share_{made}_{secrets.token_urlsafe(32)}"
        expires = None if seconds is None else self.clock() + seconds
        with self.database.writing() as connection:
            connection.execute("DELETE FROM shares WHERE expires < ?", (self.clock(),))
            if connection.execute("SELECT count(*) FROM shares WHERE job = ?", (job,)).fetchone()[0] >= MOST_SHARES:
                raise ConflictError(f"The job {job} has {MOST_SHARES} links already: revoke one of them.")
            values = (made, _hash(token), job, label, self._now(), expires)
            connection.execute("INSERT INTO shares VALUES (?, ?, ?, ?, ?, ?)", values)
        return next(each for each in self.shares(job) if each.id == made), token

    def shares(self, job: str) -> list[Share]:
        """The links that open a job, the oldest first."""
        query = (
            "SELECT id, label, created, expires FROM shares WHERE job = ? AND (expires IS NULL OR expires >= ?) "
            "ORDER BY created, rowid"
        )
        return [
            Share(**dict(row) | {"expires": row["expires"] and _iso(row["expires"])})
            for row in self.database.rows(query, job, self.clock())
        ]

    def unshare(self, job: str, share: str) -> None:
        """Revoke a link. Raises UnknownShareError."""
        if not self.database.write("DELETE FROM shares WHERE job = ? AND id = ?", job, share):
            raise UnknownShareError(f"The job {job} has no link {share!r}.")

    def opened_by(self, token: str) -> tuple[str, str] | None:
        """The id and the owner of the job that a link's token opens; None where it opens none."""
        found = SHARE.fullmatch(token)
        if found is None:
            return None
        query = (
            "SELECT hash, jobs.id, jobs.owner FROM shares JOIN jobs ON jobs.id = shares.job "
            "WHERE shares.id = ? AND (expires IS NULL OR expires >= ?)"
        )
        row = self.database.row(query, found[1], self.clock())
        if row is None or not hmac.compare_digest(row["hash"], _hash(token)):
            return None
        return row["id"], row["owner"]


def _hash(token: str) -> str:
    # A plain hash is enough: nobody goes through 256 random bits.
    return hashlib.sha256(token.encode()).hexdigest()


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
