"""A run on disk that survives being killed: its state and all its rows, committed together.

The folder is a zarr group (format 3). Every array of rows in it is cut into chunks along its rows,
one file each. `checkpoint/commit.zip` holds the state, how many rows count, and those rows that
don't fill a chunk yet. A commit writes the chunks that are now full, then replaces that file: from
this moment it is made. A chunk that counts is never written again, so a kill can't harm it. A copy
of the rows that fill no chunk, and the arrays' shapes, follow for those who read with zarr.
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
