"""Tables in terminals of any width: everything is reachable, and nothing is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.report.command import built
from runner.report.figures import DASH
from runner.report.layout import table_text, width_of, wrap
from runner.report.read import open_report, sweeps
from runner.report.render import Report, text
from runner.report.table import Cell, Column, Table, figure, words
from tests import golden_db

WIDTHS = (40, 60, 80, 100, 120, 160, 200)


def table(columns: list[Column], *rows: list[Cell], narrow: str = "blocks") -> Table:
    cells = [dict(zip((column.key for column in columns), row, strict=True)) for row in rows]
    return Table("t", "T", "s", [], columns, cells, narrow=narrow)  # type: ignore[arg-type]


def body(made: Table, width: int) -> list[str]:
    return table_text(made, width).split("\n")[2:]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of the article, as it is before it is laid out."""
    path = golden_db.golden(tmp_path_factory.mktemp("layout") / "results.db")
    with open_report(str(path)) as connection:
        return built(sweeps(connection)[-1:], "results.db", [], "all")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_of_any_cell_or_sentence_is_cut_or_lost(report: Report, width: int) -> None:
    printed = set(text(report, width).replace("[ ", "[").replace("[ ", "[").split())

    for made in report.sections[0].tables:
        cells = [row[column.key] for row in made.rows for column in made.columns if column.shown]
        said = {word for cell in cells for word in (cell.text, *(cell.bracket or ())) if word != DASH}
        assert {word.strip("[,]") for words in said for word in words.split()} - {
            w.strip("[,]") for w in printed
        } == set()
        assert {word for note in made.notes for word in note.split()} - printed == set()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_column_is_reachable(report: Report, width: int) -> None:
    printed = text(report, width)

    for made in report.sections[0].tables:
        # In records, the keys (or the first column) head each record without their own heads.
        measured = [column for column in made.columns[1:] if column.shown and column.kind != "key"]
        heads = {part for column in measured for part in column.head.split()}
        assert {head for head in heads if head.strip("/") not in printed} == set()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_fits_the_terminal(report: Report, width: int) -> None:
    assert [line for line in text(report, width).splitlines() if width_of(line) > width] == []


def test_a_wide_table_is_printed_in_blocks_that_repeat_the_keys() -> None:
    columns = [Column("p", "protocol", "key"), Column("a", "first"), Column("b", "second"), Column("c", "third")]
    made = table(columns, [words("grpc"), figure(1234567), figure(2345678), figure(3456789)])

    assert body(made, 24) == [
        "protocol      first",
        "--------  ---------",
        "grpc      1,234,567",
        "",
        "protocol     second",
        "--------  ---------",
        "grpc      2,345,678",
        "",
        "protocol      third",
        "--------  ---------",
        "grpc      3,456,789",
    ]


def test_a_table_too_narrow_for_blocks_becomes_records() -> None:
    columns = [
        Column("p", "protocol", "key"),
        Column("n", "body\nbytes", "key", labelled=True),
        Column("a", "p50\nµs"),
    ]
    made = table(columns, [words("websocket"), figure(17_000_000), Cell("301", 301, 295, 309, ("295", "309"))])

    assert body(made, 24) == ["websocket · body bytes", "  17,000,000", "  p50 µs  301 [295, 309]"]


def test_a_number_longer_than_the_terminal_stays_whole() -> None:
    made = table(
        [Column("p", "protocol", "key"), Column("a", "messages")], [words("grpc"), figure(1_208_219_000_000)]
    )

    assert body(made, 10) == ["grpc", "  messages", "    1,208,219,000,000"]


def test_brackets_line_up() -> None:
    cells = [
        Cell("52", 52, 51, 54, ("51", "54")),
        Cell("301", 301, 295, 1309, ("295", "1,309")),
        Cell("7", 7, 7, 7),
    ]
    made = table([Column("a", "p50")], *([cell] for cell in cells))

    assert body(made, 80) == [
        "             p50",
        "----------------",
        " 52 [ 51,    54]",
        "301 [295, 1,309]",
        "  7 n=1",
    ]


def test_heads_of_several_lines_stand_on_the_rule() -> None:
    made = table([Column("p", "protocol", "key"), Column("a", "CPU\nµs")], [words("grpc"), figure(5)])

    assert body(made, 80) == ["          CPU", "protocol   µs", "--------  ---", "grpc        5"]


def test_wide_characters_take_two_places() -> None:
    made = table(
        [Column("p", "name", "key"), Column("a", "n")], [words("漢字"), figure(1)], [words("🚀 grpc"), figure(22)]
    )

    lines = body(made, 80)

    assert lines == ["name      n", "-------  --", "漢字      1", "🚀 grpc  22"]
    assert {width_of(line) for line in lines} == {11}


def test_prose_is_broken_between_words_before_columns_are() -> None:
    columns = [Column("p", "protocol", "key"), Column("a", "because", "prose")]
    made = table(columns, [words("grpc"), words("one two three four five six seven")])

    assert body(made, 30) == [
        "protocol  because",
        "--------  ------------------",
        "grpc      one two three four",
        "          five six seven",
    ]


def test_a_turned_table_has_a_column_for_each_row_where_that_fits() -> None:
    columns = [Column("p", "protocol", "key"), Column("a", "browser", "prose"), Column("b", "schema", "prose")]
    made = table(columns, [words("grpc"), words("no"), words("proto")], [words("sse"), words("yes"), words(None)])
    made = Table("t", "T", "s", [], made.columns, made.rows, narrow="turned")

    assert body(made, 80) == [
        "         grpc   sse",
        "-------  -----  ---",
        "browser  no     yes",
        "schema   proto  -",
    ]
    assert body(made, 12)[0] == "grpc"


def test_columns_for_machines_only_are_not_printed() -> None:
    made = table([Column("p", "protocol", "key"), Column("a", "hidden", shown=False)], [words("grpc"), figure(1)])

    assert "hidden" not in table_text(made, 80)


def test_a_table_without_rows_says_so() -> None:
    assert body(table([Column("p", "protocol", "key")]), 80) == ["no runs of this kind in this sweep"]


@settings(deadline=None)
@given(st.lists(st.text("abé漢🚀.,", min_size=1, max_size=12), max_size=12), st.integers(min_value=1, max_value=40))
def test_wrapping_keeps_every_word_and_the_width_where_it_can(spoken: list[str], width: int) -> None:
    lines = wrap(" ".join(spoken), width)

    assert " ".join(lines).split() == spoken
    assert all(width_of(line) <= width or " " not in line.strip() for line in lines)


def test_wrapped_lines_hang_under_their_own_indent() -> None:
    assert wrap("  one two three", 9, "  ") == ["  one two", "    three"]
