"""A fix of Snakemake: check jobs with an `ancient` input even if that input is made again.

Snakemake 9 (snakemake/snakemake#4166, open in 9.27.1) does not check jobs downstream of a job that will run,
since they run anyway. But jobs behind an `ancient` input, which it counts among them, do not run for that
reason. Their missing or outdated outputs go unnoticed, and the workflow ends with exit code 0 without them.
"""

from collections.abc import Iterator
from typing import Any


def mend(dag_class: type) -> None:
    """Make Snakemake check all jobs that need not run because of their inputs.

    Args:
        dag_class: snakemake.dag.DAG; a second call changes nothing.
    """
    original = dag_class.update_needrun
    if hasattr(original, "mended"):
        return

    async def update_needrun(self: Any, *args: Any, **kwargs: Any) -> None:
        # there, bfs is only used to find the jobs that need no check
        self.bfs = _followed(self)
        try:
            await original(self, *args, **kwargs)
        finally:
            del self.bfs

    update_needrun.mended = True  # type: ignore[attr-defined]
    dag_class.update_needrun = update_needrun


def _followed(dag: Any) -> Any:
    def bfs(direction: Any, *jobs: Any, **kwargs: Any) -> Iterator[Any]:
        """Jobs that run whenever `jobs` do: `DAG.bfs`, but not through inputs that are all ancient."""
        narrowed = _Narrowed(direction)
        return type(dag).bfs(dag, narrowed, *jobs, **kwargs)

    return bfs


class _Narrowed:
    """The dependants of each job, without those whose inputs from it are all ancient."""

    def __init__(self, depending: Any):
        self._depending = depending

    def __getitem__(self, job: Any) -> dict[Any, Any]:
        return {
            other: files
            for other, files in self._depending[job].items()
            if not all(file.is_ancient for file in files)
        }
