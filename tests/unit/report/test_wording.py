"""Templates and data files of the report are sound, and hold what the code asks for."""

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
