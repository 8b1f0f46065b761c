"""What Snakemake prints of an error of the configuration: the user's file and line, none of ours."""

from pathlib import Path
from types import SimpleNamespace

from snakemake.exceptions import format_exception_to_string

from seedbed.config import embedding
from seedbed.core.errors import SeedbedError

SNAKEFILE = """
from seedbed.core.errors import SeedbedError
try:
    raise SeedbedError("it is wrong", where="config, grid.seeds", found=3, hint="mend it")
except SeedbedError as error:
    raise refusal(error, workflow) from None
"""


def test_an_error_names_the_file_that_says_it_last_and_no_line_of_the_workflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text("grid:\n  seeds: [0]\nmore: 1\n")
    Path("one.yaml").write_text("\ngrid: {seeds: 3}\n")
    Path("two.yaml").write_text("experiment: x\n")
    modifier = SimpleNamespace(is_main_snakefile=lambda: True)
    # as Snakemake lists them: those of the command line, then that of the Snakefile
    files = [Path("one.yaml"), Path("two.yaml"), "config.yaml"]
    workflow = SimpleNamespace(modifier=modifier, configfiles=files)
    code = compile(SNAKEFILE, "common.smk", "exec")
    try:
        exec(code, {"refusal": embedding.refusal, "workflow": workflow})
    except Exception as error:
        text = format_exception_to_string(error, {"common.smk": {line: line for line in range(20)}})
    assert text == (
        "Error:\nit is wrong\n  where: config, grid.seeds (one.yaml, line 2)\n  found: 3\n  hint:  mend it"
    )
    modifier.is_main_snakefile = lambda: False
    error = SeedbedError("it is wrong", where="config, grid.seeds")
    assert str(embedding.refusal(error, workflow)) == str(error)  # a module's config stands elsewhere
