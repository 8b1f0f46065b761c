"""The words of documents and figures: templates and data files beside the code, to be edited without Python.

`PACKAGE/templates/NAME.j2` holds Jinja macros. Each words a few sentences from a record or some values. Line
ends and runs of spaces count as one space. The texts of the report are inline Markdown, see
`report.documents.blocks`: the filter `code` shows a name of the config, or a text of the data. A field that a
record lacks, or that is None, is an error.

`PACKAGE/data/NAME.yaml` holds tables of words: headings, headers of columns, labels of figures, the glossary.
A text may have values in braces, which `fill` puts in.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

from seedbed.core import words

LIBRARY = Path(__file__).parents[1]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, ten times as fast, where libyaml is there
_SPACE = re.compile(r"[ \n]+")
_ITEM = re.compile(r"^ *- ", re.MULTILINE)


class Words:
    """The macros of a template: those of report/power are in report/templates/power.j2."""

    def __init__(self, template: str):
        self.path = template_path(template)

    def say(self, macro: str, *values: Any, **more: Any) -> str:
        """What a macro makes of these values, on one line.

        Raises:
            jinja2.UndefinedError: the template uses a field or a value that is not there.
            ValueError: it shows one that is None.
        """
        return one_line(self._render(macro, values, more))

    def items(self, macro: str, *values: Any, **more: Any) -> list[str]:
        """The items of a macro that words a list; each begins with `- ` on a line of its own."""
        return [one_line(item) for item in _ITEM.split(self._render(macro, values, more))[1:]]

    def _render(self, macro: str, values: tuple[Any, ...], more: dict[str, Any]) -> str:
        found = getattr(environment().get_template(self.path).module, macro)
        return str(found(*values, **more))


def template_path(template: str) -> str:
    """The file of a template, below the library."""
    package, name = template.split("/")
    return f"{package}/templates/{name}.j2"


def fill(text: str, /, **values: Any) -> str:
    """A text of a data file, with these values in place of their names: {{ rise }}."""
    return _compiled(text).render(values) if "{{" in text else text


@functools.cache
def _compiled(text: str) -> jinja2.Template:
    return environment().from_string(text)


@functools.cache
def data(name: str) -> Any:
    """The content of a data file: report/titles is report/data/titles.yaml."""
    package, file = name.split("/")
    return yaml.load((LIBRARY / package / "data" / f"{file}.yaml").read_text(encoding="utf-8"), Loader=LOADER)


def one_line(text: str) -> str:
    """The text with one space in place of each line end and run of spaces."""
    return _SPACE.sub(" ", text).strip()


@functools.cache
def environment() -> jinja2.Environment:
    """Jinja with the filters that templates use."""
    # nothing is escaped here: what is made is Markdown, which `documents` writes as HTML or LaTeX
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(LIBRARY), undefined=jinja2.StrictUndefined, finalize=_shown
    )
    made.filters |= {
        "capital": words.capital,
        "change": lambda difference, metric: words.change(metric, difference),
        "code": words.code,
        "counted": words.count,
        "difference": lambda difference, metric: words.difference_text(metric, difference),
        "framework": words.framework_name,
        "in_per_cent": lambda metric: bool(words.unit_of(metric).sign),
        "key": words.key_text,
        "level": words.level_text,
        "listed": lambda parts: words.join(list(parts)),
        "metric": words.metric_name,
        "number": lambda number: f"{number:,}",
        "one_line": one_line,
        "p": words.p_text,
        "percent": words.percent,
        "range": lambda bounds, metric: words.difference_range(metric, *bounds),
        "short": words.short_number,
        "whole": round,
        "worded": _worded,
        "value": lambda value, metric: words.value_text(metric, value),
    }
    return made


def _worded(items: Any, pattern: str) -> list[str]:
    """Each item, or key and value of each, in the place of the braces: 3,000 on books."""
    pairs = items.items() if isinstance(items, Mapping) else ((item,) for item in items)
    return [pattern.format(*pair) for pair in pairs]


def _shown(value: Any) -> Any:
    if value is None:
        raise ValueError("a template shows a value that is None")
    return value
