"""Read a sheet of an Excel workbook (.xlsx)."""

import logging
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.spelling import nearest
from seedbed.data.readers.files import Record, SourceFile, explaining
from seedbed.data.readers.tables import Table, select
from seedbed.sources.archives import MAX_RATIO, RATIO_FROM

log = logging.getLogger(__name__)


def read_excel(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read the sheet of a workbook that the dataset names, or its only one that is not empty.

    Formulas count as the values that Excel saved with them. Empty rows at both ends are left out.

    Raises:
        SeedbedError: the file is no workbook or a bomb, has no such sheet or several, or `tables.select`
            finds a fault.
    """
    import openpyxl

    what = "the file cannot be read as an .xlsx workbook"
    remedy = "open it in Excel or LibreOffice and save it as .xlsx without a password, or as CSV"
    with explaining(file, what, remedy), file.open() as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and other things beside the cells
        _refuse_bomb(file, stream)
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        sheets = {sheet.title: _rows(sheet) for sheet in book.worksheets}
        book.close()
    return select(_chosen(file, sheets, definition.get("sheet")), file, definition)


def _rows(sheet: Any) -> Table:
    sheet.reset_dimensions()  # which some programs write wrongly
    rows = [(number, list(cells)) for number, cells in enumerate(sheet.iter_rows(values_only=True), 1)]
    filled = [place for place, (_, cells) in enumerate(rows) if _filled(cells)]
    rows = rows[filled[0] : filled[-1] + 1] if filled else []
    # rows end with their last filled cell
    width = max((_filled(cells) for _, cells in rows), default=0)
    return [(number, [*cells, *[None] * width][:width]) for number, cells in rows]


def _filled(cells: list[Any]) -> int:
    return max((place for place, cell in enumerate(cells, 1) if cell is not None), default=0)


def _chosen(file: SourceFile, sheets: Mapping[str, Table], asked: str | None) -> Table:
    if asked is not None and asked in sheets:
        return sheets[asked]
    filled = [name for name, rows in sheets.items() if rows]
    if asked is None and len(filled) <= 1:
        if len(sheets) > 1 and filled:
            log.info("%s: read the sheet %r; the others are empty", file.path, filled[0])
        return sheets[filled[0]] if filled else []
    raise SeedbedError(
        f"the workbook has no sheet {asked!r}" if asked is not None else "the workbook has several sheets",
        where=file.where,
        found=f"sheets {', '.join(map(repr, sheets))}",
        hint=f"{nearest(asked or '', list(sheets))}name one of them: sheet of the dataset in the config",
    )


def _refuse_bomb(file: SourceFile, stream: Any) -> None:
    packed = file.path.stat().st_size
    with zipfile.ZipFile(stream) as opened:
        size = sum(member.file_size for member in opened.infolist())
    stream.seek(0)
    if size > RATIO_FROM and size > MAX_RATIO * packed:
        raise SeedbedError(
            "refused to read the workbook",
            where=file.where,
            found=f"a bomb: {size:,} bytes from {packed:,} compressed ones",
            hint="check the source, or save the sheet as CSV in UTF-8",
        )
