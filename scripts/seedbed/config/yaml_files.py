"""Inspect config files as text: find the lines of keys, and refuse values that YAML would silently change."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.spelling import nearest

TEXT, WHOLE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int"
KINDS = {  # how YAML 1.1 reads unquoted words
    WHOLE: "a number with another spelling",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:float": "a number, perhaps with another spelling",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:timestamp": "a date",
}


def refuse_unreadable(path: str | Path) -> None:
    """Refuse a config file that Snakemake could not read, of which it names neither file nor line.

    Raises:
        SeedbedError: there is no such file, or it is no YAML.
    """
    import yaml

    path = Path(path)
    if not path.is_file():
        there = sorted(other.name for other in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        raise SeedbedError(
            "there is no such config file",
            where=str(path),
            hint=nearest(path.name, there)
            or "give its path from this folder, such as experiments/cls_books.yaml",
        )
    try:
        yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (ValueError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        raise SeedbedError(
            "this config file is no YAML",
            where=f"{_short(path)}, line {mark.line + 1}" if mark else _short(path),
            found=getattr(error, "problem", None) or str(error),
            hint="indent with spaces, not tabs; close every bracket and quote; put a space after each colon",
        ) from None


def refuse_repeated_keys(path: str | Path) -> None:
    """Refuse a config file with a repeated key, of which YAML would silently drop the first one.

    Raises:
        SeedbedError: a key is repeated.
    """
    import yaml

    nodes, seen = [_composed(path)], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:  # an alias, which may even be inside its own target
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _check_keys(path, [key for key in keys if key.tag != "tag:yaml.org,2002:merge"])  # <<: *name
            nodes += [value for _, value in node.value]


def refuse_changed_labels(path: str | Path) -> None:
    """Refuse labels that YAML does not read as text: no, 01, 1.0.

    Raises:
        SeedbedError: there is such a label; the error has the line, and the labels with quotes.
    """
    datasets = _value(_composed(path), "datasets")
    for _, dataset in datasets.value if _is_mapping(datasets) else ():
        for key in ("labels", "label_names"):
            listed = _value(dataset, key)
            items = listed.value if listed is not None and listed.id == "sequence" else []
            scalars = [item for item in items if item.id == "scalar"]
            for item in scalars:
                if item.tag == TEXT or (item.tag == WHOLE and re.fullmatch(r"0|-?[1-9]\d*", item.value)):
                    continue
                quoted = ", ".join(json.dumps(other.value, ensure_ascii=False) for other in scalars)
                raise SeedbedError(
                    f"YAML reads the label {item.value} as {KINDS.get(item.tag, item.tag)}",
                    where=f"{_short(path)}, line {item.start_mark.line + 1}",
                    found=f"{key}: [{', '.join(other.value for other in scalars)}]",
                    hint=f"put it into quotes: {key}: [{quoted}]",
                )


def _short(path: str | Path) -> str:
    """A path as a user writes it: relative, if it lies below the working directory."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)


def _is_mapping(node: Any) -> bool:
    return node is not None and node.id == "mapping"


def _value(node: Any, key: str) -> Any:
    """The node at a key of a node; None if it has no such key."""
    found = (value for name, value in (node.value if _is_mapping(node) else ()) if name.value == key)
    return next(found, None)


def _composed(path: str | Path) -> Any:
    """The root node of a YAML file; None if it cannot be read, which Snakemake reports."""
    import yaml

    try:
        return yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _check_keys(path: str | Path, keys: Sequence[Any]) -> None:
    """Refuse a repeated key in one block; `keys` are nodes of PyYAML."""
    lines: dict[str, int] = {}
    for key in keys:
        line = key.start_mark.line + 1
        if key.value in lines:
            raise SeedbedError(
                f"the key {key.value!r} is repeated in one block",
                where=f"{_short(path)}, line {line}",
                found=f"{key.value}, also on line {lines[key.value]}",
                hint="remove one: YAML would drop the first",
            )
        lines[key.value] = line


def locate(where: str, paths: Sequence[str | Path]) -> str:
    """`where` of an error, with config file and line after its key.

    Args:
        where: "config, KEY", optionally followed by a semicolon, a colon or a space and more; anything else
            is returned unchanged.
        paths: the config files; a later one overrides an earlier one.
    """
    match = re.match(r"config, ([^\s;:,]+)", where)
    for path in reversed(paths) if match else ():
        root = _composed(path)
        if root is not None and (line := _line_of(root, match[1])):
            return f"{match[0]} ({_short(path)}, line {line}){where[match.end() :]}"
    return where


def _line_of(node: Any, key: str) -> int | None:
    """The line of a key, or None; dots separate its parts, and a part may contain dots itself."""
    for name, value in node.value if isinstance(node.value, list) and node.id == "mapping" else ():
        if name.value == key:
            return name.start_mark.line + 1
        if key.startswith(f"{name.value}."):
            line = _line_of(value, key[len(name.value) + 1 :])
            if line is not None:
                return line
    if node.id == "sequence" and key.split(".")[0].isdecimal():
        number, _, rest = key.partition(".")
        if int(number) < len(node.value):
            item = node.value[int(number)]
            return (_line_of(item, rest) if rest else None) or item.start_mark.line + 1
    return None


def flow(block: Mapping[str, Any]) -> str:
    """A block of the config in one line, such as `columns: {text: review}`."""
    import yaml

    text = yaml.safe_dump(block, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000)
    return text.strip()[1:-1]  # without the braces of the whole
