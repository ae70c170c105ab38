"""What the verdict of a run rests on becomes a table of its own. Older runs have no rows in it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

WHOLE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def upgrade() -> None:
    """Called by runner.store.upgrade."""
    op.create_table(
        "verdict_check",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("unit", sa.String, nullable=False),
        sa.Column("least", sa.Double),
        sa.Column("most", sa.Double),
        sa.Column("passed", WHOLE, nullable=False),
        sa.Column("weight", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_verdict_check"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_verdict_check_run_id_run", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
