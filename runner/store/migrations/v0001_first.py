"""The tables of the first release."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

WHOLE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
VERDICTS = "('ok', 'void', 'unsupported', 'failed', 'interrupted')"


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.String, nullable=False) for name in names]


def _documents(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, DOCUMENT, nullable=False) for name in names]


def _of_a_run(table: str, *key: str) -> list[sa.Constraint]:
    return [
        sa.PrimaryKeyConstraint("run_id", *key, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=f"fk_{table}_run_id_run", ondelete="CASCADE"),
    ]


def upgrade() -> None:
    """Called by runner.store.upgrade."""
    op.create_table(
        "environment",
        *_texts("environment_hash"),
        *_documents("facts"),
        sa.PrimaryKeyConstraint("environment_hash", name="pk_environment"),
    )
    op.create_table(
        "sweep",
        *_texts("sweep_id"),
        sa.Column("suite", sa.String),
        *_texts("command"),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("planned", WHOLE, nullable=False),
        sa.Column("started_at", sa.String(27), nullable=False),
        sa.Column("ended_at", sa.String(27)),
        sa.PrimaryKeyConstraint("sweep_id", name="pk_sweep"),
    )
    op.create_table(
        "run",
        *_texts("run_id", "sweep_id", "environment_hash"),
        sa.Column("position", WHOLE, nullable=False),
        *_texts("scenario", "label", "operation", "protocol", "engine", "codec", "variant", "placement"),
        sa.Column("connections", WHOLE, nullable=False),
        sa.Column("repeat", WHOLE, nullable=False),
        *_texts("verdict", "reason"),
        sa.Column("started_at", sa.String(27), nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        *_documents("overrides", "config", "conditions", "facts", "findings", "errors"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run"),
        sa.CheckConstraint(f"verdict IN {VERDICTS}", name="ck_run_verdict"),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.sweep_id"], name="fk_run_sweep_id_sweep"),
        sa.ForeignKeyConstraint(
            ["environment_hash"], ["environment.environment_hash"], name="fk_run_environment_hash_environment"
        ),
    )
    op.create_index("ix_run_sweep_id", "run", ["sweep_id"])
    op.create_table(
        "measurement",
        *_texts("run_id", "metric"),
        sa.Column("value", sa.Double, nullable=False),
        *_texts("unit"),
        *_of_a_run("measurement", "metric"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sample",
        *_texts("run_id", "name"),
        sa.Column("seq", WHOLE, nullable=False),
        sa.Column("value_ns", sa.BigInteger, nullable=False),
        *_of_a_run("sample", "name", "seq"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "distribution",
        *_texts("run_id", "name"),
        sa.Column("n", WHOLE, nullable=False),
        sa.Column("min_ns", sa.BigInteger, nullable=False),
        sa.Column("max_ns", sa.BigInteger, nullable=False),
        *_texts("encoding"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        *_of_a_run("distribution", "name"),
    )
    op.create_table(
        "series",
        *_texts("run_id", "name"),
        sa.Column("t_ns", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Double),
        *_of_a_run("series", "name", "t_ns"),
        sqlite_with_rowid=False,
    )
