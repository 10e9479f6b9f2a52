"""A run on disk that survives being killed: its state and all its rows, committed together.

The folder is a zarr group (format 3). Every array of rows in it is cut into chunks along its rows,
one file each. `checkpoint/commit.zip` holds the state, how many rows count, those rows that don't
fill a chunk yet, and the checksum of every chunk that is full. A commit writes the chunks that are
now full, then replaces that file: from this moment it is made. A chunk that counts is never written
again, so a kill can't harm it. For those who read with zarr, a copy of the rows that fill no chunk
and the arrays' shapes follow: no commit depends on these.

Checksums are verified when a chunk is read, and for chunks of the last commit when the folder is
opened: where one of them is damaged, the commit before is used, and a warning names the file.
"""

from schuss.checkpoint.disk import INNER
from schuss.checkpoint.errors import FULL, CheckpointError
from schuss.checkpoint.identity import FORMAT, fingerprint
from schuss.checkpoint.record import Record
from schuss.checkpoint.rows import Rows
from schuss.checkpoint.spec import CHUNK_BYTES, CHUNK_ROWS, DTYPES, Spec
from schuss.checkpoint.store import Checkpoint
from schuss.checkpoint.zarr_view import GROUP, PLAIN_GROUP

__all__ = [
    "CHUNK_BYTES",
    "CHUNK_ROWS",
    "DTYPES",
    "FORMAT",
    "FULL",
    "GROUP",
    "INNER",
    "PLAIN_GROUP",
    "Checkpoint",
    "CheckpointError",
    "Record",
    "Rows",
    "Spec",
    "fingerprint",
]
