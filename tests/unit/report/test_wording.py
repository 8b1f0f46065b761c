"""Templates and data files of the report are sound, and hold what the code asks for."""

import ast
import re
from dataclasses import dataclass

import jinja2
import pytest

from seedbed.core import wording

FOUND = sorted(wording.LIBRARY.glob("*/templates/*.j2"))
TEMPLATES = [f"{path.parts[-3]}/{path.stem}" for path in FOUND]
DATA = [f"{path.parts[-3]}/{path.stem}" for path in sorted(wording.LIBRARY.glob("*/data/*.yaml"))]
CODE = {path: path.read_text(encoding="utf-8") for path in wording.LIBRARY.rglob("*.py")}


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Words of a made-up template."""

    def make(text: str) -> wording.Words:
        path = tmp_path / "some" / "templates" / "made.j2"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return wording.Words("some/made")

    monkeypatch.setattr(wording, "LIBRARY", tmp_path)
    wording.environment.cache_clear()
    yield make
    wording.environment.cache_clear()


def macros(template: str) -> list[str]:
    return re.findall(r"{%-? *macro (\w+)", source(template))


def source(template: str) -> str:
    return (wording.LIBRARY / wording.template_path(template)).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_loads(name):
    module = wording.environment().get_template(wording.template_path(name)).module
    assert macros(name)
    assert all(callable(getattr(module, macro)) for macro in macros(name))


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_macro_is_used_and_every_macro_that_is_asked_for_is_there(name):
    code = "\n".join(text for text in CODE.values() if f'Words("{name}")' in text)
    asked = set(re.findall(r'\.(?:say|items)\(\s*["\'](\w+)["\']', code))
    captioned = re.findall(r'make_caption\(\s*WORDS,\s*"(\w+)"', code)
    asked |= {f"{macro}{ending}" for macro in captioned for ending in ("", "_details")}
    inside = {macro for macro in macros(name) if re.search(rf"(?<!macro )\b{macro}\(", source(name))}
    # those of a template that others import
    others = "".join(
        source(other) for other in TEMPLATES if f'"{wording.template_path(name)}"' in source(other)
    )
    inside |= {macro for macro in macros(name) if f".{macro}(" in others}
    assert asked <= set(macros(name)) <= asked | inside


@pytest.mark.parametrize("name", DATA)
def test_every_data_file_is_read_and_holds_no_empty_text(name):
    def check(value):
        assert value not in (None, "", [], {})
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            check(inner)

    check(wording.data(name))
    assert any(f'data("{name}")' in text for text in CODE.values())


@pytest.mark.parametrize("name", ["figures/labels", "report/cells", "report/columns", "report/headings"])
def test_every_word_is_used(name):
    found = wording.data(name)
    words = {*found, *(key for inner in found.values() if isinstance(inner, dict) for key in inner)}
    code = "\n".join(CODE.values())
    assert {word for word in words if not re.search(rf"""["']{word}["']""", code)} == set()


@dataclass(frozen=True)
class Record:
    name: str
    size: int | None = 1


def test_a_text_is_one_line_and_a_list_is_its_items(words):
    made = words(
        "{% macro text(found) %}\n  On {{ found.name | code }}\n  {{ found.size | counted('run') }}."
        "{% endmacro %}"
        "{% macro items(found) %}\n- One\n  and more.\n{% if found.size %}\n- Two - too.\n{% endif %}"
        "{% endmacro %}"
    )
    assert made.say("text", Record("a`b")) == "On ``a`b`` 1 run."
    assert made.items("items", Record("a")) == ["One and more.", "Two - too."]
    assert made.items("items", Record("a", 0)) == ["One and more."]


def test_a_field_that_is_missing_or_none_is_an_error(words):
    made = words(
        "{% macro shown(found) %}{{ found.nmae }}{% endmacro %}"
        "{% macro asked(found) %}{% if found.nmae %}yes{% endif %}{% endmacro %}"
        "{% macro size(found) %}{{ found.size }}{% endmacro %}"
    )
    for macro in ("shown", "asked"):
        with pytest.raises(jinja2.UndefinedError, match="nmae"):
            made.say(macro, Record("a"))
    with pytest.raises(ValueError, match="None"):
        made.say("size", Record("a", None))
    with pytest.raises(jinja2.UndefinedError):
        made.say("shown")


# --- no English in Python -----------------------------------------------------------------------------------

# not English, or not for readers of a document: styles of matplotlib, fonts, HTML, formulas, and what
# messages of errors are made of
ALLOWED = {
    "axes fraction", "offset points", "outside upper left", "DejaVu Sans", "Last Resort",
    '<a href="{}">{}</a>', '<span class="whole">\\g<0></span>',
    "  N(4d² + 2df + 9d + f) + dV + d(T + 2) + 2d",
    "N = {}, d = {}, f = {}, V = {}, T = {}\n\n",
    "table of contrasts", "no object of strings", "invalid JSON: {}", "{} more",
}  # fmt: skip
SHOWN_BY = {"Heading", "Paragraph", "Details", "Cell", "Table", "set_xlabel", "set_ylabel", "set_title"}
FOR_ERRORS = {"SeedbedError", "getLogger", "debug", "info", "warning", "error"}
PROSE = re.compile(r"(?<![\w{/.=-])[A-Za-z]?[a-z]+(?![\w}/.=-])")


def english(tree: ast.AST) -> list[str]:
    """The literals of a module that people read: several words, or one that a block or an axis shows."""
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and called(node) in FOR_ERRORS):
            hidden |= set(ast.walk(node))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            hidden.add(node.body[0].value)
        elif isinstance(node, ast.JoinedStr):  # counts as a whole
            hidden |= {part for part in node.values if isinstance(part, ast.Constant)}
    shown = {text for node in ast.walk(tree) if isinstance(node, ast.Call) for text in shown_by(node)}
    literals = ((node, text_of(node)) for node in ast.walk(tree) if node not in hidden)
    return [
        text
        for node, text in literals
        if text not in ALLOWED and PROSE.search(text) and (node in shown or " " in text.strip())
    ]


def shown_by(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that people read as they are."""
    found = [word.value for word in call.keywords if word.arg in ("label", "caption", "title")]
    if called(call) in SHOWN_BY:
        place = 1 if called(call) == "Table" else 0  # a table begins with its name
        found += call.args[place : place + 1]
    lists = [node.elts for node in found if isinstance(node, (ast.List, ast.Tuple))]
    return [*found, *(node for elements in lists for node in elements)]


def called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def text_of(node: ast.AST) -> str:
    """The text of a literal, with {} in place of values; empty of anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


SHOWING = sorted(path for stage in ("figures", "report") for path in (wording.LIBRARY / stage).rglob("*.py"))


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: "/".join(path.parts[-2:]))
def test_no_english_stands_in_python(path):
    """It belongs into templates and data files, but for messages of errors."""
    assert english(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_english_is_found_in_sentences_headers_and_labels():
    code = '''
def f(a):
    """A docstring is no text of a document."""
    blocks = [Heading("Methods"), Table("runs", ["seed", "framework"], [], caption="As it is.")]
    axis.set_xlabel("tokens")
    draw(label="mean", style="dashed", transform="axes fraction")
    text = f"{a} and others"
    if a["n_seeds"] != f"{a}, {a}":
        raise ValueError("this goes to the log")
    return a.get("test_accuracy", "") + ", ".join(a)
'''
    expected = ["Methods", "seed", "framework", "As it is.", "tokens", "mean", "{} and others"]
    assert sorted(english(ast.parse(code))) == sorted(expected)
