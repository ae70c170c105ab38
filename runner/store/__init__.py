"""results.db: schema, views, opening and saving."""

from runner.store.errors import StoreError, Unstorable
from runner.store.ids import new_id
from runner.store.open import BUSY_S, Store, open_store, read_store
from runner.store.record import VERDICTS, RunRecord, SweepRecord, Verdict
from runner.store.save import read_unsaved

__all__ = [
    "BUSY_S",
    "VERDICTS",
    "RunRecord",
    "Store",
    "StoreError",
    "SweepRecord",
    "Unstorable",
    "Verdict",
    "new_id",
    "open_store",
    "read_store",
    "read_unsaved",
]
