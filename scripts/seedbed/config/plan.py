"""The params, input files and resources of each rule, computed from the config.

Methods with an argument `wildcards` serve as Snakemake's input functions and params. They read the config
and, of files, only the fingerprints of shared folders.
"""

import functools
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seedbed.config import stages
from seedbed.config.batching import batching_of
from seedbed.config.params import canonical, without_prose
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import RUN_KEYS, Run, build_runs
from seedbed.config.shared_folders import SharedFolders
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.model_formats import MODEL_FORMATS
from seedbed.core.recipes import ALL, SIZE, declared, without_size
from seedbed.core.run_folder import (
    bags_folder,
    batch_file,
    probes_folder,
    seeds_of_folder,
    subset_file,
)
from seedbed.core.splits import SPLITS
from seedbed.core.states import FOLDER, PATTERN, PRETRAINED, SUFFIX, EncoderOfStates
from seedbed.core.tasks import CLASSES, LABEL_SETS, TASKS, task_of
from seedbed.sources.locations import candidates, local_files, local_path

UNTRACKED = ("training_checkpoints", "gpus", "batches")  # keys that do not change numbers
RUN_MINUTES = 60  # 16 (fairseq) and 13 (Transformers) measured for 1,125 updates on 4 CPU cores
ADOPTION_MEMORY, ADOPTION_MINUTES = 500, 10  # links to four files, made without PyTorch


class Plan:
    """Answers to the rules' questions; built from Snakemake's raw config before any rule is defined.

    Raises:
        SeedbedError: the config is invalid, or a shared folder was made from another definition.
    """

    def __init__(self, raw: dict[str, Any]):
        self.config = resolve_config(raw)
        self.results = Path(self.config["results"]).expanduser()
        self.stage = stages.enter(self.config, Path(self.experiment_folder))
        self.runs = build_runs(self.config)
        self.batching = batching_of(self.config)
        self.task = task_of(self.config)
        self._by_folder = {run.folder: run for run in self.runs}
        self.shared = SharedFolders(self.config, self.results)
        self.shared.check()

    # --- params of rules ---

    def source(self, wildcards: Any) -> dict[str, Any]:
        """Definition of a source, without descriptions."""
        return canonical(without_prose(self.config["sources"][wildcards.source]))

    def dataset(self, wildcards: Any) -> dict[str, Any]:
        """Definition of a dataset, without descriptions."""
        return canonical(self.shared.dataset_definition(wildcards.dataset))

    def model(self, wildcards: Any) -> dict[str, Any]:
        """Definition of a model, without descriptions."""
        return canonical(without_prose(self.config["models"][wildcards.model]))

    def fairseq_run(self, wildcards: Any) -> dict[str, Any]:
        """Params of a fairseq run, as plain data."""
        return self._run("fairseq", wildcards)

    def transformers_run(self, wildcards: Any) -> dict[str, Any]:
        """Params of a Transformers run, as plain data."""
        return self._run("transformers", wildcards)

    def _run(self, framework: str, wildcards: Any) -> dict[str, Any]:
        return self._params(self._find_run(framework, wildcards))

    def _params(self, run: Run) -> dict[str, Any]:
        return {
            **{key: getattr(run, key) for key in RUN_KEYS},
            "task": self.task.name,
            # earlier runs have no such key
            **({"metric": self.task.chosen_metric} if self.task.chosen_metric else {}),
            "swept": dict(run.swept),
            "settings": canonical(self.config["recipes"][run.recipe]),
            "evaluation": canonical(self.config["evaluation"]),
            "device": self.config["device"],
            "deterministic": self.config["deterministic"],
            "cuda_graphs": self.config["cuda_graphs"],
            "keep_model": self.config["keep_model"],
            **self._packing(run),
            **self._states(run),
            **self.batching.params(self._batches[run.batch]),
        }

    def _states(self, run: Run) -> dict[str, str]:
        """The name of the states that a run is trained on; other runs have no such key."""
        if not METHODS[run.method].reads_states:
            return {}
        recipe = self.config["recipes"][run.recipe]
        return {"states": EncoderOfStates.of(run.init, run.init_seed, recipe).name}

    def _packing(self, run: Run) -> dict[str, bool]:
        """Whether graphs of a run take packed batches: the kernel that they need is for half precision.

        Other runs have no such key, and the identity that they had before there was one.
        """
        precision = self.config["recipes"][run.recipe]["precision"]
        graphed = self.config["cuda_graphs"] and self.task.cuda_graphs and not self.config["fused_seeds"]
        encodes = not METHODS[run.method].reads_states
        packed = graphed and encodes and precision == "bfloat16" and run.framework == "transformers"
        return {"packed": True} if packed else {}

    def _find_run(self, framework: str, wildcards: Any) -> Run:
        names = (
            wildcards.dataset,
            wildcards.model,
            framework,
            wildcards.init,
            wildcards.recipe,
            wildcards.seed,
        )
        return self.find_run("/".join(names))

    def find_run(self, folder: str) -> Run:
        """The run of a folder below results/EXPERIMENT/runs.

        Raises:
            SeedbedError: the grid has no such run.
        """
        if folder not in self._by_folder:
            raise SeedbedError(
                "this run is not in the grid of the experiment",
                where=f"runs/{folder}",
                hint="ask for a run of the grid, or add it to grid in the config",
            )
        return self._by_folder[folder]

    def untracked(self) -> dict[str, Any]:
        """Settings that scripts read from Snakemake's config instead of params; no number depends on them."""
        resolved = {key: canonical(self.config[key]) for key in UNTRACKED}
        resolved["batches"]["at_once"] = self.batching.at_once
        return resolved

    # --- batches: runs that share a job ---

    @property
    def batched(self) -> bool:
        """Whether the rules of batches train, and the rule of a run only adopts its batch's result."""
        return self.batching.batched

    def fairseq_batch_runs(self, wildcards: Any) -> list[dict[str, Any]]:
        """Params of a batch's runs, each in the form of `fairseq_run`."""
        return self._batch_runs("fairseq", wildcards)

    def transformers_batch_runs(self, wildcards: Any) -> list[dict[str, Any]]:
        """Params of a batch's runs, each in the form of `transformers_run`."""
        return self._batch_runs("transformers", wildcards)

    def _batch_runs(self, framework: str, wildcards: Any) -> list[dict[str, Any]]:
        return [self._params(run) for run in self._find_batch(framework, wildcards)]

    def _find_batch(self, framework: str, wildcards: Any) -> list[Run]:
        name = f"{wildcards.dataset}/{wildcards.model}/{framework}/{wildcards.batch}"
        if name not in self._batches:
            raise SeedbedError(
                "unknown batch",
                where=f"work/batches/{name}; config, batches",
                hint="request runs or tables instead, which need their batches",
            )
        return self._batches[name]

    @functools.cached_property
    def _batches(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.batch, []).append(run)
        return found

    def together(self, run: Run) -> int:
        """Number of runs that train as one model with this one, itself included."""
        return len(self._batches[run.batch]) if self.config["fused_seeds"] else 1

    def fairseq_batch(self, wildcards: Any) -> list[str]:
        """The file of the batch that trains a run; none where the run is a job of its own."""
        return self._batch_file("fairseq", wildcards)

    def transformers_batch(self, wildcards: Any) -> list[str]:
        """The file of the batch that trains a run; none where the run is a job of its own."""
        return self._batch_file("transformers", wildcards)

    def _batch_file(self, framework: str, wildcards: Any) -> list[str]:
        if not self.batched:
            return []
        batch = self._find_run(framework, wildcards).batch
        return [str(batch_file(Path(self.experiment_folder), batch))]

    # --- states of encoders, on which heads are trained ---

    def fairseq_states(self, wildcards: Any) -> list[str]:
        """The states that a run is trained on; none of a run that encodes its texts itself."""
        return self._states_of([self._find_run("fairseq", wildcards)])

    def transformers_states(self, wildcards: Any) -> list[str]:
        """The states that a run is trained on; none of a run that encodes its texts itself."""
        return self._states_of([self._find_run("transformers", wildcards)])

    def fairseq_batch_states(self, wildcards: Any) -> list[str]:
        """The states that runs of a batch are trained on."""
        return self._states_of(self._find_batch("fairseq", wildcards))

    def transformers_batch_states(self, wildcards: Any) -> list[str]:
        """The states that runs of a batch are trained on."""
        return self._states_of(self._find_batch("transformers", wildcards))

    def _states_of(self, runs: list[Run]) -> list[str]:
        paths = (
            f"{self.results}/data/{run.dataset}/{run.model}/{FOLDER}/{name}{SUFFIX}"
            for run in runs
            for name in self._states(run).values()
        )
        return list(dict.fromkeys(paths))

    def probes(self, wildcards: Any) -> list[str]:
        """The accuracies of probes of each dataset and model, of texts as long as the recipes take them.

        Raises:
            SeedbedError: the task has no classes.
        """
        if self.task.outputs != CLASSES:
            raise SeedbedError(
                "probes are for classification only",
                where="probes; config, grid.datasets",
                found=f"the task {self.task.name}",
                hint="ask for the experiment's other results",
            )
        recipes = (self.config["recipes"][name] for name in self.config["grid"]["recipes"])
        names = dict.fromkeys(EncoderOfStates.of_checkpoint(recipe).name for recipe in recipes)
        return [path for name in names for path in self.per_pair(f"probes/{name}_accuracy.csv")]

    # --- resources of jobs; memory and time grow with each attempt ---

    @property
    def run_threads(self) -> int:
        """CPU threads of a run's job."""
        return 1 if self.batched else self.config["threads"]

    @property
    def batch_threads(self) -> int:
        """CPU threads of a batch's job, for all runs trained at once."""
        return self.config["threads"] * self.batching.at_once

    def run_memory(self, wildcards: Any, attempt: int) -> int:
        """MiB of a run's job, growing with each attempt, since the last one may have had too little."""
        return ADOPTION_MEMORY if self.batched else self.task.memory * attempt

    def run_minutes(self, wildcards: Any, attempt: int) -> int:
        """Minutes of a run's job; a run that reaches its limit is resumed."""
        return ADOPTION_MINUTES if self.batched else RUN_MINUTES * attempt

    def batch_memory(self, wildcards: Any, attempt: int) -> int:
        """MiB of a batch's job, for all runs trained at once."""
        return self.training_memory * attempt

    def batch_minutes(self, wildcards: Any, attempt: int) -> int:
        """Minutes of a batch's job, with `at_once` runs at a time."""
        return RUN_MINUTES * self.batching.turns(self._largest_batch) * attempt

    @property
    def training_memory(self) -> int:
        """MiB of a job that trains, a run's or a batch's, at its first attempt."""
        return self.batching.memory(self.task.memory, self._largest_batch)

    @functools.cached_property
    def _largest_batch(self) -> int:
        return max(map(len, self._batches.values()))

    # --- input files ---

    def only(self, kind: str, paths: list[str]) -> list[str]:
        """The paths, if the task has this kind of outputs or models; else none: no rule makes such files."""
        return paths if kind in self.task.kinds else []

    @property
    def trainable_table(self) -> list[str]:
        """The table of trainable parameters; empty for experiments that train all weights."""
        return [f"{self.experiment_folder}/trainable_parameters.csv"] if self.freezing else []

    def source_files(self, wildcards: Any) -> list[str]:
        """The files at a source's local locations, so that Snakemake notices changes.

        If none exists, the first is returned all the same: a workflow that uses this one as a module may make
        it. Otherwise Snakemake uses the fetched source, or reports that the file is missing.
        """
        locations = self.source(wildcards)["locations"]
        places = list(map(local_path, candidates(locations, self.config["mirror"])))
        if not any(path is None or path.exists() for path in places):
            return [str(local_path(locations[0]))]
        return local_files(locations)

    def dataset_source(self, wildcards: Any) -> str:
        """The manifest of a dataset's source."""
        return f"{self.results}/sources/{self.dataset(wildcards)['source']}/manifest.json"

    def model_source(self, wildcards: Any) -> str:
        """The manifest of a model's source."""
        return f"{self.results}/sources/{self.model(wildcards)['source']}/manifest.json"

    def run_files(self, name: str) -> list[str]:
        """File `name` of every run of the grid, in the order of the run table."""
        return [f"{self.experiment_folder}/runs/{run.folder}/{name}" for run in self.runs]

    def per_run(self, name: str) -> Callable[[Any], list[str]]:
        """`run_files` as an input function, for rules that gather all runs.

        The process of every job would expand a list. If a rule also names another rule's outputs, Snakemake
        hashes the whole list once for each of its files.
        """
        return lambda wildcards: self.run_files(name)

    def lost_files(self, wildcards: Any) -> list[str]:
        """Missing files of runs whose report exists, for the default target.

        Snakemake does not remake missing files that nothing else needs. Without a report, it plans all runs
        anyway, and naming them here would print them all.
        """
        if not Path(self.experiment_folder, "report.html").exists():
            return []
        names = ("run.json", "metrics.csv", "predictions.csv")
        return [path for name in names for path in self.run_files(name) if not Path(path).exists()]

    def per_dataset(self, name: str) -> list[str]:
        """`name` of every dataset of the grid."""
        return [f"{self.results}/data/{dataset}/{name}" for dataset in self.config["grid"]["datasets"]]

    def clustered(self, name: str) -> list[str]:
        """`name` of every dataset of the grid that has a column of clusters."""
        blocks = ((dataset, self.config["datasets"][dataset]) for dataset in self.config["grid"]["datasets"])
        return [
            f"{self.results}/data/{dataset}/{name}" for dataset, of in blocks if "cluster" in of["columns"]
        ]

    def per_split(self, ending: str) -> list[str]:
        """{split}`ending` of every dataset of the grid."""
        return [path for split in SPLITS for path in self.per_dataset(f"{split}{ending}")]

    def per_pair_and_split(self, ending: str) -> list[str]:
        """tokens/{split}`ending` of every dataset and model of the grid."""
        return [path for split in SPLITS for path in self.per_pair(f"tokens/{split}{ending}")]

    def per_model(self, name: str, framework: str = "") -> list[str]:
        """`name` of every model of the grid, or of those that a framework can train."""
        return [f"{self.results}/models/{model}/{name}" for model in self._models(framework)]

    def per_pair(self, name: str, framework: str = "") -> list[str]:
        """`name` of every dataset and model of the grid, or of models that a framework can train."""
        pairs = itertools.product(self.config["grid"]["datasets"], self._models(framework))
        return [f"{self.results}/data/{dataset}/{model}/{name}" for dataset, model in pairs]

    def _models(self, framework: str = "") -> list[str]:
        formats = {
            name: MODEL_FORMATS[self.config["models"][name]["format"]]
            for name in self.config["grid"]["models"]
        }
        return [name for name, each in formats.items() if framework in ("", *each.frameworks)]

    def subset(self, wildcards: Any) -> list[str]:
        """The order of training texts of which a run of a size takes the first; none for a run on all."""
        recipe = self.config["recipes"].get(wildcards.recipe, {})
        if SIZE not in recipe:
            return []
        return [self._subset_file(wildcards.dataset, seeds_of_folder(wildcards.seed)[1])]

    def subsets_of_batch(self, framework: str) -> Callable[[Any], list[str]]:
        """As `subset`, for all runs of a batch of a framework: an input function."""

        def files(wildcards: Any) -> list[str]:
            runs = self._find_batch(framework, wildcards)
            sized = [run for run in runs if SIZE in self.config["recipes"][run.recipe]]
            return list(dict.fromkeys(self._subset_file(run.dataset, run.data_seed) for run in sized))

        return files

    def subsets(self) -> list[str]:
        """The orders of training texts of all datasets and data seeds; none without sizes of training."""
        if not self.sizes:
            return []
        return list(dict.fromkeys(self._subset_file(run.dataset, run.data_seed) for run in self.runs))

    def subsets_of_dataset(self, wildcards: Any) -> list[str]:
        """The orders of a dataset's training texts, one for each of `data_seeds`."""
        return [self._subset_file(wildcards.dataset, seed) for seed in self.data_seeds]

    def bags_of_sizes(self) -> list[str]:
        """The bags of words of each size, with their predictions; none without sizes of training."""
        if not self.sizes:
            return []
        folders = (
            bags_folder(Path(self.experiment_folder), name) for name in self.config["grid"]["datasets"]
        )
        return [str(folder / name) for folder in folders for name in ("bags.csv", "predictions.csv")]

    def probes_of_sizes(self) -> list[str]:
        """The linear probes of each size, with their predictions: of each dataset and model, and of texts as
        long as the recipes take them. None without sizes of training, classes or runs from the checkpoint.
        """
        if not self.sizes or self.task.outputs != CLASSES:
            return []
        experiment = Path(self.experiment_folder)
        folders = dict.fromkeys(
            probes_folder(experiment, run.dataset, run.model, encoder.name)
            for run in self.runs
            if run.init == PRETRAINED
            for encoder in [EncoderOfStates.of_checkpoint(self.config["recipes"][run.recipe])]
        )
        return [str(folder / name) for folder in folders for name in ("probes.csv", "predictions.csv")]

    @property
    def data_seeds(self) -> list[int]:
        """The data seeds of the grid."""
        return list(dict.fromkeys(run.data_seed for run in self.runs))

    @property
    def sizes(self) -> list[int]:
        """The numbers of training texts of the grid that are not all."""
        return [size for size in self.config["grid"].get("train_sizes", ()) if size != ALL]

    @property
    def size_tables(self) -> list[str]:
        """The tables that aggregation makes of sizes of training alone."""
        return ["learning_curves", "label_worth"] if self.sizes else []

    @property
    def example_tables(self) -> list[str]:
        """The tables of what runs get right example by example, where right and wrong are told apart."""
        told_apart = self.task.outputs in (CLASSES, LABEL_SETS)
        return ["example_errors", "example_gains"] if told_apart else []

    @property
    def decision(self) -> list[str]:
        """The file with what the present stage decides; none of an experiment that does not grow."""
        if self.stage is None:
            return []
        return [str(stages.stage_file(Path(self.experiment_folder), self.stage.number))]

    def _subset_file(self, dataset: str, data_seed: int) -> str:
        return str(subset_file(self.results / "data" / dataset, data_seed))

    def parity(self, wildcards: Any) -> list[str]:
        """The result of the parity gate that a run waits for; none if fairseq cannot train the model."""
        if "fairseq" not in MODEL_FORMATS[self.config["models"][wildcards.model]["format"]].frameworks:
            return []
        return [f"{self.results}/data/{wildcards.dataset}/{wildcards.model}/parity.json"]

    @functools.cached_property
    def experiment_folder(self) -> str:
        """results/EXPERIMENT"""
        return f"{self.results}/{self.config['experiment']}"

    # --- figures and tables ---

    def reporting(self) -> dict[str, Any]:
        """The part of the config for figures and reports, as plain data."""
        return {**self.aggregation(), "figures": canonical(self.config["figures"])}

    def aggregation(self) -> dict[str, Any]:
        """The part of the config for the tables: `reporting` without the look of figures."""
        chosen: dict[str, Any] = {"task": self.task.name}
        chosen |= {key: canonical(self.config[key]) for key in ("experiment", "grid", "statistics")}
        chosen |= canonical(stages.asked(self.config))
        for kind in ("datasets", "recipes"):  # in the order of the grid
            blocks = ((name, self.config[kind][name]) for name in self.config["grid"][kind])
            chosen[kind] = {name: canonical(without_prose(block)) for name, block in blocks}
        for name, block in chosen["datasets"].items():
            if "label_names" in block:
                block["classes"] = self.shared.classes_of(name)  # what the runs call them
        return chosen

    def label_names(self) -> dict[str, list[str]]:
        """Names of the classes of the grid's datasets for people; empty for questions."""
        blocks = {name: self.config["datasets"][name] for name in self.config["grid"]["datasets"]}
        return {name: block["label_names"] for name, block in blocks.items() if "label_names" in block}

    @property
    def freezing(self) -> dict[str, dict[str, Any]]:
        """The settings that determine the trained parameters, for each recipe that freezes weights."""
        of_adapters = ("method", "lora", "quantization", "frozen_dtype")
        found = {}
        for name in self.config["grid"]["recipes"]:
            recipe = self.config["recipes"][name]
            method = METHODS[recipe["method"]]
            keys = ("method", "family", *method.settings) if method.trains_part else of_adapters
            if method.freezes:
                found[name] = canonical({key: recipe[key] for key in keys if key in recipe})
        return found

    @property
    def head_size(self) -> int | None:
        """The largest number of outputs of a head in the grid: of classes, or 1 for a number; None if models
        have none."""
        if not self.task.has_labels:
            return None
        blocks = (self.config["datasets"][name] for name in self.config["grid"]["datasets"])
        return max(len(block.get("labels", ())) or 1 for block in blocks)

    def recipe_limits(self) -> dict[str, dict[str, Any]]:
        """The settings of recipes that may cut texts shorter than the model does, for the audit."""
        recipes = ((name, self.config["recipes"][name]) for name in self.config["grid"]["recipes"])
        return {
            without_size(name, recipe): {
                "family": declared(recipe),
                "swept": recipe["swept"],
                "max_positions": recipe["max_positions"],
            }
            for name, recipe in recipes
        }

    def asked_of_models(self) -> dict[str, dict[str, Any]]:
        """Requirements of the grid's recipes and datasets on every model: arguments of `limits.check`."""
        recipes = {
            name: {key: limit[key] for key in ("family", "max_positions")}
            for name, limit in self.recipe_limits().items()
        }
        blocks = ((name, self.config["datasets"][name]) for name in self.config["grid"]["datasets"])
        return {"recipes": recipes, "datasets": {name: block.get("max_tokens") for name, block in blocks}}

    def adapter_recipes(self) -> dict[str, dict[str, Any]]:
        """The grid's recipes with an adapter."""
        recipes = ((name, self.config["recipes"][name]) for name in self.config["grid"]["recipes"])
        return {name: canonical(recipe) for name, recipe in recipes if METHODS[recipe["method"]].has_adapter}

    # --- wildcards ---

    def pattern(self, kind: str, of: str | None = None) -> str:
        """A regular expression that matches exactly the defined names of a kind.

        For seeds and states it matches any name: Snakemake searches it for every path, which is slow with
        thousands of names, and `_find_run` refuses runs outside the grid. `of` limits it to datasets or
        models of tasks with this kind of outputs or models, so that rules of two kinds never match the same
        path.
        """
        if kind == "seeds":
            return r"seed\d+(-\d+)?"
        if kind == "states":
            return PATTERN
        blocks = self.config[kind]
        names = [name for name in blocks if of in (None, *self._kinds_of(kind, blocks[name]))]
        return "|".join(map(re.escape, names)) or r"(?!)"  # which matches nothing

    def texts_of(self, number: int, outputs: str) -> str:
        """A regular expression that matches exactly the datasets of outputs, of texts (1) or of pairs (2)."""
        blocks = self.config["datasets"]
        of_outputs = [name for name in blocks if outputs in self._kinds_of("datasets", blocks[name])]
        names = [name for name in of_outputs if ("text_pair" in blocks[name]["columns"]) == (number > 1)]
        return "|".join(map(re.escape, names)) or r"(?!)"  # which matches nothing

    def models_in(self, *formats: str) -> str:
        """A regular expression that matches exactly the names of models in these formats."""
        names = [name for name, block in self.config["models"].items() if block["format"] in formats]
        return "|".join(map(re.escape, names)) or r"(?!)"  # which matches nothing

    def _kinds_of(self, kind: str, block: dict[str, Any]) -> set[str]:
        """The kinds of outputs and models of a dataset's or model's tasks."""
        if kind == "models":
            return {of for task in TASKS.values() if block["format"] in task.formats for of in task.kinds}
        return {*TASKS[block["task"]].kinds} if "task" in block else set()

    # --- folders that experiments share ---

    def source_stamp(self, wildcards: Any) -> dict[str, Any]:
        """The fingerprint of a source's folder."""
        return self.shared.stamp("sources", wildcards.source)

    def dataset_stamp(self, wildcards: Any) -> dict[str, Any]:
        """The fingerprint of a dataset's folder."""
        return self.shared.stamp("datasets", wildcards.dataset)

    def model_stamp(self, wildcards: Any) -> dict[str, Any]:
        """The fingerprint of a model's folder."""
        return self.shared.stamp("models", wildcards.model)

    def is_current(self, kind: str, name: str) -> bool:
        """See `SharedFolders.is_current`."""
        return self.shared.is_current(kind, name)
