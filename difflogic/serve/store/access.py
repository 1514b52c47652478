"""Who is signed in on the page: hashes of cookies, never these themselves."""

from __future__ import annotations

from difflogic.serve.store.records import Records


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
