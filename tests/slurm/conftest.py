"""Fixtures of the Slurm suite: the cluster, what is prepared once, and a directory for each test.

The experiment, its faults and what must hold afterwards are those of tests/workflow; here Snakemake
submits the runs to Slurm with profiles/slurm.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(TESTS)]

import cluster as cluster_module  # noqa: E402
from cluster import Cluster  # noqa: E402
from harness import Project, copy  # noqa: E402
from stock import Stock  # noqa: E402

PATIENCE = 900  # seconds until a workflow must have ended on a busy machine; on an idle one it takes under 60
PROFILE = TESTS.parent / "profiles/slurm"


@dataclass
class SlurmProject(Project):
    """A working directory whose jobs go to Slurm.

    Attributes:
        cluster: Slurm.
        profiles: of Snakemake; entries of later ones replace those of the first.
    """

    cluster: Cluster | None = None
    profiles: tuple[Path, ...] = (PROFILE,)

    def start(self, *frameworks: str, targets: Sequence[str] = (), **more: Any) -> subprocess.Popen:
        """Start Snakemake for the runs of these frameworks, or for `targets`."""
        self._targets = targets
        return super().start(*frameworks, **more)

    def command(self, *frameworks: str, options: tuple[str, ...] = ()) -> list[str]:
        """Snakemake's command line, with the profile."""
        plain = super().command(*frameworks, options=options)
        if self._targets:
            plain[plain.index("--") + 1 :] = self._targets
        snakemake, cores = plain.index("snakemake"), plain.index("--cores")
        assert plain[snakemake - 1] == "-m"
        plain[cores : cores + 2] = ["--jobs", "4"]
        # the last one counts most
        plain[cores:cores] = [word for profile in self.profiles for word in ("--profile", str(profile))]
        plain[snakemake - 1 : snakemake + 1] = [str(Path(__file__).with_name("impatient_snakemake.py"))]
        return plain

    def change_profile(self, rule: str, **resources: Any) -> None:
        """Let the jobs of a rule ask for something else than the profile says (None: not at all)."""
        content = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))
        folder = self.folder / "profile"
        folder.mkdir()
        changed = content["set-resources"]
        asked = {**changed[rule], **resources}
        changed[rule] = {name: value for name, value in asked.items() if value is not None}
        (folder / "config.yaml").write_text(yaml.safe_dump({"set-resources": changed}), encoding="utf-8")
        self.profiles = (PROFILE, folder)

    def finish(self, snakemake: subprocess.Popen) -> str:
        """Wait until Snakemake has ended well; what it printed."""
        out, _ = snakemake.communicate(timeout=PATIENCE)
        assert snakemake.returncode == 0, out[-8000:] + self.logs()
        return out

    def leave(self) -> None:
        """Cancel the jobs and kill what is left of a test that failed."""
        self.cluster.cancel_all()
        self.kill_everything()

    def submitted(self, rule: str) -> list[dict[str, str]]:
        """Slurm's accounting of this directory's jobs of a rule, in the order of their submission.

        A job that Slurm has put back into its queue has a row for each time it was started.
        """
        rows = self.cluster.accounts(self.folder)
        return [row for row in rows if row["Comment"].startswith(f"rule_{rule}_wildcards")]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm cluster of two nodes; it is stopped in any case."""
    with cluster_module.running() as running:
        yield running


@pytest.fixture(scope="session")
def stock(tmp_path_factory) -> Stock:
    """What is made without Slurm."""
    return Stock(tmp_path_factory.mktemp("stock"))


@pytest.fixture
def reference(stock) -> Project:
    """The same experiment, uninterrupted and without Slurm."""
    return stock.finished()


@pytest.fixture
def prepared(stock, cluster, tmp_path) -> Iterator[SlurmProject]:
    """A directory of its own in which everything but the runs is made; its jobs are cancelled at the end."""
    own = copy(stock.prepared(), tmp_path / "work")
    project = SlurmProject(own.folder, config=own.config, cluster=cluster)
    yield project
    project.leave()


def environment_of(process: int) -> dict[str, str]:
    """The environment in which a process was started."""
    content = Path(f"/proc/{process}/environ").read_bytes().decode(errors="surrogateescape")
    return dict(line.split("=", 1) for line in content.split("\0") if "=" in line)


def device_of(process: int) -> tuple[str, str]:
    """(node, CUDA_VISIBLE_DEVICES) that Slurm has given to a process."""
    environment = environment_of(process)
    return environment["SLURMD_NODENAME"], environment["CUDA_VISIBLE_DEVICES"]
