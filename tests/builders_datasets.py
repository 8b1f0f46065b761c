"""Builders of datasets for tests: a fetched source, the block of the config, Webis-CLS-10's XML."""

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from seedbed.core import files

SPLITS = ("train", "validation", "test")


def define_dataset(form: str, ending: str = "", **changes: Any) -> dict[str, Any]:
    """A resolved block of the config, with the classes 0 and 1."""
    return {
        "task": "classification",
        "format": form,
        "files": {split: f"{split}{ending}" for split in SPLITS},
        "columns": {"text": ["text"], "label": "label"},
        "labels": ["0", "1"],
        "label_names": ["negative", "positive"],
        "validation_split": {"size": 0.1, "seed": 0},
        "neutral_ratings": "error",
        "near_duplicates": None,
        "drop_leaks": False,
        **changes,
    }


def write_manifest(folder: Path) -> Path:
    """A manifest beside the files of `folder`/files, as the download rule writes it."""
    root = folder / "files"
    found = {
        path.relative_to(root).as_posix(): {"sha256": files.sha256(path), "bytes": path.stat().st_size}
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    manifest = {"location": "https://host/data.zip", "files": found}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder / "manifest.json"


def write_source(folder: Path, contents: dict[str, str | bytes]) -> Path:
    """A fetched source with these files; the path of its manifest."""
    for name, content in contents.items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return write_manifest(folder)


def webis_item(rating: Any, text: str, summary: str = "Bien", title: str = "Un livre") -> str:
    """An item of Webis-CLS-10, of four lines."""
    return (
        f"<item><category>Livres</category><rating>{rating}</rating>\n<text>{escape(text)}</text>\n"
        f"<title>{escape(title)}</title><summary>{escape(summary)}</summary>\n"
        "<helpfulness_votes><value>9</value><value>10</value></helpfulness_votes><badges /></item>\n"
    )


def webis_xml(*items: str) -> str:
    """A file of Webis-CLS-10; the first item begins on line 2."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n<items>{"".join(items)}</items>\n'
