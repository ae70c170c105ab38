"""From each released version of the tables to the next: one Alembic revision each, named by its number.

    v0001_first.py   what the first release had
    v0002_....py     revision = "0002", down_revision = "0001", and upgrade(), made of Alembic's operations

A change of the tables is: change runner/store/schema.py, raise its VERSION, add the revision. A test compares what
the revisions make with what schema.py makes. Neither a view (runner.store.layout) nor a measurement needs one.

When `upgrade()` runs, there is no view, and SQLite's foreign keys are off; runner.store.upgrade sees to both. A
revision names every table and column itself: it must do the same when schema.py has moved on. A table without rowid
is rebuilt as one only if batch_alter_table is told: table_kwargs={"sqlite_with_rowid": False}.
"""
