"""Word every branch of every template from plain records: python branches.py FOLDER

`records/PACKAGE/NAME.yaml` has the macros of `PACKAGE/templates/NAME.j2` that code asks for. A case has
the macro's parameters by name; each but the first has only what differs from the first, also within its
record `found`. FOLDER/PACKAGE/NAME.txt has what a macro says of each case. A branch that no
case words is an error.
"""

import itertools
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent / "scripts")]

import jinja2  # noqa: E402
import yaml  # noqa: E402
from jinja2 import nodes  # noqa: E402

from seedbed.core import wording  # noqa: E402
from seedbed.core.tasks import TASKS  # noqa: E402

RECORDS = Path(__file__).with_name("records")
REACHED = "reached_branch"  # what templates call here
LONG = 400  # of a longer text, a case shows the sentences that the first one lacks


class Branches(jinja2.Environment):
    """An environment that knows which branches its templates have and which of them were taken."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.there: list[str] = []
        self.taken: set[int] = set()
        self.globals[REACHED] = self._reached

    def _reached(self, number: int, value: Any = "") -> Any:
        self.taken.add(number)
        return value

    def _mark(self, name: str, line: int, branch: str, *value: nodes.Expr) -> nodes.Call:
        self.there.append(f"{name}:{line}: {branch}")
        number = nodes.Const(len(self.there) - 1)
        return nodes.Call(nodes.Name(REACHED, "load"), [number, *value], [], None, None)

    def _parse(self, source: str, name: str, filename: str) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for macro in tree.find_all(nodes.Macro):
            macro.body.insert(0, nodes.Output([self._mark(name, macro.lineno, f"macro {macro.name}")]))
        later = {id(one) for node in tree.find_all(nodes.If) for one in node.elif_}
        for node in tree.find_all(nodes.If):
            node.body.insert(0, nodes.Output([self._mark(name, node.lineno, "if")]))
            if id(node) not in later and (node.else_ or not node.elif_):
                # a chain of `elif` without `else` has a branch for every verdict
                node.else_.insert(0, nodes.Output([self._mark(name, node.lineno, "else")]))
        for node in tree.find_all(nodes.CondExpr):
            node.expr1 = self._mark(name, node.lineno, "if within a line", node.expr1)
            other = node.expr2 or nodes.Const("")
            node.expr2 = self._mark(name, node.lineno, "else within a line", other)
        return tree.set_environment(self)


class Loader(yaml.SafeLoader):
    """YAML with tasks by name: `!task classification`."""


Loader.add_constructor("!task", lambda loader, node: TASKS[loader.construct_scalar(node)])


def cases(template: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of each macro, with all parameters."""
    macros = yaml.load((RECORDS / f"{template}.yaml").read_text(encoding="utf-8"), Loader)
    return {name: [_completed(found[0], case) for case in found] for name, found in macros.items()}


def _completed(first: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if isinstance(first.get("found"), dict) and "found" in case:
        case = case | {"found": first["found"] | case["found"]}
    return first | case


def text(template: str) -> str:
    """What the macros of a template say, case by case."""
    words = wording.Words(template)
    macros = []
    for macro, found in cases(template).items():
        try:
            said = [_parts(words.items(macro, **case) or [words.say(macro, **case)]) for case in found]
        except (jinja2.UndefinedError, TypeError, ValueError) as error:
            sys.exit(f"records/{template}.yaml: {macro}: {error}")
        macros.append("".join([f"{macro}\n", *(_shown(parts, said[0]) for parts in said)]))
    return "\n".join(macros)


def _parts(said: list[str]) -> list[str]:
    """The items of a list, or the sentences of a long text."""
    return re.split(r"(?<=\.) (?=[A-Z])", said[0]) if len(said) == 1 and len(said[0]) > LONG else said


def _shown(parts: list[str], first: list[str]) -> str:
    """A line for each part; how many there are in a row that the first case has, too."""
    lines: list[str] = []
    for known, group in itertools.groupby(parts, lambda part: parts is not first and part in first):
        told = list(group)
        lines += [f"... {len(told)} as above"] if known else told
    return "  - " + "\n    ".join(lines) + "\n"


def main(target: Path) -> None:
    """Write what every template says."""
    with mock.patch.object(jinja2, "Environment", Branches):
        environment = wording.environment()
    for path in sorted(wording.LIBRARY.glob("*/templates/*.j2")):
        package = path.parts[-3]
        (target / package).mkdir(parents=True, exist_ok=True)
        (target / package / f"{path.stem}.txt").write_text(text(f"{package}/{path.stem}"), encoding="utf-8")
    left = [name for number, name in enumerate(environment.there) if number not in environment.taken]
    if left:
        sys.exit("\n".join([*sorted(left), f"no case in {RECORDS} words these branches"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
