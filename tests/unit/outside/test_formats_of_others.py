"""Files of other programs, in the shapes that their code writes."""

import json
from pathlib import Path

import numpy as np
import pytest

from seedbed.core.errors import SeedbedError
from seedbed.outside.read import read_results

DATE = "2025-03-01T10-00-00.123456"


def write_json(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def write_lines(path: Path, records: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


# --- lm-evaluation-harness ---


def sample(doc: int, metrics: dict, *, filtered: str | None = "none", text: str = "") -> dict:
    """A line of samples_TASK_DATE.jsonl; without `filtered` as versions before 0.4.6 wrote it."""
    listed = {} if filtered is None else {"filter": filtered, "metrics": list(metrics)}
    return {
        "doc_id": doc,
        "doc": {"question": f"q{doc}"},
        "target": "0",
        "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": " a"}},
        "resps": [[["-1.5", "False"]], [["-2.5", "False"]]],
        "filtered_resps": [["-1.5", "False"], ["-2.5", "False"]],
        **listed,
        "doc_hash": f"hash of {text or doc}",
        "prompt_hash": "p",
        "target_hash": "t",
        **metrics,
    }


def write_model(
    folder: Path,
    task: str,
    scores: list[float],
    *,
    name: str = "",
    seed: int = 1234,
    date: str = DATE,
    **options,
) -> Path:
    write_json(
        folder / f"results_{date}.json",
        {
            "results": {task: {"alias": task, "acc,none": float(np.mean(scores))}},
            "higher_is_better": {task: {"acc": True, "acc_norm": True, "brier_score": False}},
            "config": {"random_seed": 0, "numpy_seed": 1234, "torch_seed": 1234, "fewshot_seed": seed},
            "model_name": name or folder.name,
        },
    )
    records = [
        sample(doc, {"acc": score, "acc_norm": 1 - score}, **options) for doc, score in enumerate(scores)
    ]
    return write_lines(folder / f"samples_{task}_{date}.jsonl", records)


@pytest.mark.parametrize("filtered", ["none", None])
def test_samples_of_lm_eval(tmp_path, filtered):
    write_model(tmp_path / "org__one", "arc_easy", [1.0, 0.0, 1.0], name="org/one", filtered=filtered)
    write_model(tmp_path / "org__two", "arc_easy", [0.0, 0.0, 1.0], name="org/two", filtered=filtered)
    (results,) = read_results(tmp_path)
    assert (results.format, results.dataset, results.metric) == ("lm-eval", "arc_easy", "acc")
    assert results.systems == ("org/one", "org/two")
    assert results.examples == ("0", "1", "2")
    assert results.seeds == {"org/one": (1234,), "org/two": (1234,)}
    assert results.scores["org/one"].tolist() == [[1, 0, 1]]
    assert results.bounds == (0, 1)
    assert read_results(tmp_path, metric="acc_norm")[0].scores["org/two"].tolist() == [[1, 1, 0]]


def test_runs_of_lm_eval_with_several_seeds(tmp_path):
    for seed in (3, 1):
        date = f"2025-03-0{seed}T10-00-00.5"
        for model in ("one", "two"):
            write_model(tmp_path / model, "mrpc", [seed == 3, 1.0], seed=seed, date=date)
    (results,) = read_results([tmp_path / "one", tmp_path / "two"])
    assert results.seeds["one"] == (1, 3)
    assert results.values["one"].tolist() == [0.5, 1]


def test_tasks_of_lm_eval_are_apart(tmp_path):
    for model in ("one", "two"):
        for task, count in (("arc_easy", 2), ("hellaswag", 3)):
            write_model(tmp_path / model, task, [1.0] * count)
    assert {one.dataset: len(one.examples) for one in read_results(tmp_path)} == {
        "arc_easy": 2,
        "hellaswag": 3,
    }
    assert [one.dataset for one in read_results(tmp_path, dataset="hellaswag")] == ["hellaswag"]
    with pytest.raises(SeedbedError, match="did you mean 'hellaswag'") as caught:
        read_results(tmp_path, dataset="helaswag")
    assert caught.value.found == "the datasets arc_easy, hellaswag"


def test_of_several_filters_of_lm_eval_one_is_chosen(tmp_path):
    for model in ("one", "two"):
        records = [
            sample(doc, {"exact_match": score}, filtered=kind)
            for kind, score in (("strict-match", 0.0), ("flexible-extract", 1.0))
            for doc in range(2)
        ]
        write_lines(tmp_path / model / f"samples_gsm8k_{DATE}.jsonl", records)
    with pytest.raises(SeedbedError, match="exact_match,strict-match"):
        read_results(tmp_path)
    (results,) = read_results(tmp_path, metric="exact_match,flexible-extract")
    assert (results.metric, results.values["one"].tolist()) == ("exact_match", [1])
    assert any("flexible-extract" in note for note in results.notes)
    with pytest.raises(SeedbedError, match="no sample has the filter"):
        read_results(tmp_path, metric="exact_match,loose")


@pytest.mark.parametrize(
    ("options", "metric", "what"),
    [
        ({"text": "other"}, None, "one doc_id stands for two documents"),
        ({}, "f1", "no metric 'f1'"),
        ({}, "brier_score", "no metric 'brier_score'"),
    ],
)
def test_faults_of_samples(tmp_path, options, metric, what):
    write_model(tmp_path / "one", "mrpc", [1.0])
    write_model(tmp_path / "two", "mrpc", [1.0], **options)
    with pytest.raises(SeedbedError, match=what):
        read_results(tmp_path, metric=metric)


def test_a_metric_of_lm_eval_that_should_be_small_is_refused(tmp_path):
    for model in ("one", "two"):
        path = write_model(tmp_path / model, "mrpc", [1.0])
        write_lines(path, [sample(0, {"acc": 1.0, "brier_score": 0.1})])
    with pytest.raises(SeedbedError, match="less is better"):
        read_results(tmp_path, metric="brier_score")


def test_a_metric_of_lm_eval_that_is_a_list_is_refused(tmp_path):
    for model in ("one", "two"):
        write_lines(tmp_path / model / "samples_mrpc.jsonl", [sample(0, {"f1": [0, 1]})])
    with pytest.raises(SeedbedError, match="no number for the metric") as caught:
        read_results(tmp_path)
    assert caught.value.where.endswith("samples_mrpc.jsonl, line 1")


def test_two_runs_of_one_seed_of_lm_eval_are_refused(tmp_path):
    for date in (DATE, DATE.replace("2025", "2024")):
        write_model(tmp_path / "one", "mrpc", [1.0], date=date)
    write_model(tmp_path / "two", "mrpc", [1.0])
    with pytest.raises(SeedbedError, match="leave one of the two files out"):
        read_results(tmp_path)


def test_a_line_that_was_cut(tmp_path):
    write_model(tmp_path / "one", "mrpc", [1.0])
    path = write_model(tmp_path / "two", "mrpc", [1.0, 0.0])
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    with pytest.raises(SeedbedError, match="no JSON") as caught:
        read_results(tmp_path)
    assert caught.value.where == f"{path}, line 2"


# --- run_glue.py ---


def write_run(folder: Path, accuracy: float, predictions: list[str], task: str = "_sst2") -> None:
    write_json(folder / "eval_results.json", {"epoch": 3.0, "eval_accuracy": accuracy, "eval_loss": 0.4})
    lines = "".join(f"{index}\t{prediction}\n" for index, prediction in enumerate(predictions))
    (folder / f"predict_results{task}.txt").write_text("index\tprediction\n" + lines, encoding="utf-8")


@pytest.fixture
def glue(tmp_path):
    for system, name in (("bert", "seed{}"), ("roberta", "{}")):
        for seed in (0, 1):
            answers = ["neg", "pos", "pos" if system == "bert" else "neg"]
            write_run(tmp_path / "runs" / system / name.format(seed), 0.8 + seed / 10, answers)
    return tmp_path / "runs"


def test_values_by_seed_of_run_glue(glue):
    (results,) = read_results(glue)
    assert (results.format, results.metric, results.bounds) == ("run_glue", "accuracy", (0, 1))
    assert results.seeds == {"bert": (0, 1), "roberta": (0, 1)}
    assert results.values["bert"].tolist() == [0.8, 0.9]
    assert results.scores["bert"].shape == (2, 0)
    assert results.examples == ()
    assert any("no labels" in note for note in results.notes)


@pytest.mark.parametrize("content", ["label\nneg\npos\npos\n", "idx,label\n2,pos\n0,neg\n1,pos\n"])
def test_predictions_of_run_glue_with_labels(glue, tmp_path, content):
    (tmp_path / "labels.csv").write_text(content, encoding="utf-8")
    (results,) = read_results(glue, labels=tmp_path / "labels.csv")
    assert (results.dataset, results.metric, results.classes) == ("sst2", "accuracy", ("neg", "pos"))
    assert results.scores["bert"].tolist() == [[1, 1, 1]] * 2
    assert results.scores["roberta"].tolist() == [[1, 1, 0]] * 2


def test_labels_are_of_one_task(glue, tmp_path):
    (tmp_path / "labels.csv").write_text("label\nneg\npos\npos\n", encoding="utf-8")
    for folder in ("bert/seed0", "roberta/0"):
        write_run(glue / folder, 0.5, ["neg"], task="_mnli-mm")
    with pytest.raises(SeedbedError, match="of one dataset"):
        read_results(glue, labels=tmp_path / "labels.csv")
    (results,) = read_results(glue, labels=tmp_path / "labels.csv", dataset="sst2")
    assert results.seeds["bert"] == (0, 1)


def test_a_predicted_text_needs_a_label(glue, tmp_path):
    (tmp_path / "labels.csv").write_text("label\nneg\npos\n", encoding="utf-8")
    with pytest.raises(SeedbedError, match="has no label"):
        read_results(glue, labels=tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("folder", "pattern", "found"),
    [
        ("sst2/bert/seed7", None, ("bert", 7)),
        ("sst2/bert/7", None, ("bert", 7)),
        ("sst2/bert-seed7", None, ("bert", 7)),
        ("sst2/bert_base_7", None, ("bert_base", 7)),
        ("sst2/bert", None, ("bert", 0)),
        ("7/bert/x", "{seed}/{system}/x", ("bert", 7)),
        ("bert/sst2-7", "{system}/{dataset}-{seed}", ("bert", 7)),
    ],
)
def test_folders_name_system_and_seed(tmp_path, folder, pattern, found):
    other = folder.replace("bert", "other")
    for name in (folder, other):
        write_run(tmp_path / name, 0.5, [])
    (results,) = read_results([tmp_path / folder, tmp_path / other], folders=pattern)
    assert (results.systems[0], results.seeds[results.systems[0]][0]) == found
    assert results.dataset == ("sst2" if pattern and "{dataset}" in pattern else "")


@pytest.mark.parametrize(
    ("pattern", "what"), [("{seed}", "must have {system}"), ("{system}/{seed}/x", "not fit")]
)
def test_faults_of_patterns(glue, pattern, what):
    with pytest.raises(SeedbedError, match=what):
        read_results(glue, folders=pattern)


def test_a_run_of_run_glue_without_metrics(glue):
    (glue / "bert" / "seed1" / "eval_results.json").unlink()
    with pytest.raises(SeedbedError, match="has no metrics"):
        read_results(glue)


# --- EuroEval ---


def old_record(model: str, raw: list[dict], **changes) -> dict:
    total = {
        "test_mcc": 40.0,
        "test_mcc_se": 1.0,
        "test_macro_f1": 60.0,
        "test_em": 40.0,
        "num_failed_instances": 0.0,
    }
    return {
        "dataset": "angry-tweets",
        "task": "sent",
        "model": model,
        "results": {"raw": raw, "total": total},
    } | changes


def new_record(model: str, raw: list[dict], **details) -> dict:
    return {
        "schema_version": "0.2.1",
        "model_info": {"name": model, "id": model, "additional_details": {"merge": "false"}},
        "eval_library": {
            "name": "euroeval",
            "version": "16.16.1",
            "additional_details": {"dataset": "angry-tweets", "raw_results": json.dumps(raw), **details},
        },
        "evaluation_results": [
            {"evaluation_name": name, "source_data": {"dataset_name": "angry-tweets"}, "score_details": {}}
            for name in ("test_mcc", "test_macro_f1")
        ],
    }


RAW = [
    {"test_mcc": 0.40, "test_macro_f1": 0.6, "failed_instances": []},
    {"test_mcc": 0.45, "test_macro_f1": 0.7},
]


@pytest.mark.parametrize("record", [old_record, new_record])
@pytest.mark.parametrize("metric", [None, "macro_f1", "test_macro_f1"])
def test_records_of_euroeval(tmp_path, record, metric):
    path = write_lines(
        tmp_path / "euroeval_benchmark_results.jsonl", [record("one", RAW), record("two", RAW[:1])]
    )
    (results,) = read_results(path, metric=metric)
    assert (results.format, results.dataset) == ("euroeval", "angry-tweets")
    assert results.metric == ("macro_f1" if metric else "mcc")
    assert results.values["one"].tolist() == ([0.6, 0.7] if metric else [0.4, 0.45])
    assert results.seeds == {"one": (0, 1), "two": (0,)}
    assert any("bootstrap" in note for note in results.notes)
    assert read_results(tmp_path, metric=metric)[0].values["two"].tolist() == [0.6 if metric else 0.4]


def test_older_records_of_euroeval_have_a_list_by_split(tmp_path):
    raw = {"test": [{"loss": 2.0, "mcc": 0.4}, {"loss": 3.0, "mcc": 0.45}]}
    path = write_lines(tmp_path / "results.jsonl", [old_record(model, raw) for model in ("one", "two")])
    path.write_text("\n" + path.read_text(encoding="utf-8").strip(), encoding="utf-8")  # as they wrote it
    (results,) = read_results(path)
    assert results.metric == "mcc"  # the first one of total, not of raw
    assert results.values["two"].tolist() == [0.4, 0.45]


def test_ways_of_evaluation_of_euroeval_are_systems_of_their_own(tmp_path):
    records = [old_record("one", RAW, few_shot=shot) for shot in (True, False)] + [old_record("two", RAW)]
    (results,) = read_results(write_lines(tmp_path / "r.jsonl", records))
    assert results.systems == ("one", "one (zero-shot)", "two")


@pytest.mark.parametrize(
    ("records", "what", "line"),
    [
        ([old_record("one", RAW)] * 2, "two results of one dataset and seed", 2),
        ([old_record("one", RAW), old_record("two", [{"test_mcc": float("nan")}])], "not a finite number", 2),
        ([old_record("one", RAW), old_record("two", [{"test_mcc": 40.0}])], "out of its bounds", 2),
        ([old_record("one", RAW), old_record("two", [])], "without scores by iteration", 2),
        ([old_record("one", RAW), old_record("two", [{"test_em": 0.4}])], "different metrics", 2),
        ([old_record("one", RAW), old_record("two", [{"test_cer": 0.4}])], "no metric that is known", 2),
    ],
)
def test_faults_of_euroeval(tmp_path, records, what, line):
    path = write_lines(tmp_path / "r.jsonl", records)
    with pytest.raises(SeedbedError, match=what) as caught:
        read_results(path)
    assert f"{path}, line {line}" in caught.value.where


# --- MTEB ---


def entry(main: float, experiments: list[dict] | None = None, subset: str = "default") -> dict:
    own = {} if experiments is None else {"scores_per_experiment": experiments}
    return {"main_score": main, "hf_subset": subset, "languages": ["eng-Latn"], **own}


def write_task(folder: Path, model: str, task: str, *entries: dict, split: str = "test") -> Path:
    place = folder / model.replace("/", "__") / "revision"
    write_json(place / "model_meta.json", {"name": model, "revision": "revision"})
    content = {
        "dataset_revision": "r",
        "task_name": task,
        "mteb_version": "1.14.0",
        "scores": {split: list(entries)},
    }
    return write_json(place / f"{task}.json", content)


def test_experiments_of_mteb(tmp_path):
    experiments = [{"f1": 0.5, "accuracy": 0.7}, {"f1": 0.6, "accuracy": 0.8}]
    for model in ("org/one", "org/two"):
        write_task(tmp_path, model, "Banking77Classification", entry(0.75, experiments))
    (results,) = read_results(tmp_path)
    assert (results.format, results.dataset) == ("mteb", "Banking77Classification")
    assert (results.metric, results.bounds) == ("accuracy", (0, 1))
    assert results.systems == ("org/one", "org/two")
    assert results.values["org/one"].tolist() == [0.7, 0.8]
    assert read_results(tmp_path, metric="f1")[0].values["org/one"].tolist() == [0.5, 0.6]


def test_subsets_of_mteb_are_datasets_with_one_value(tmp_path):
    for model, shift in (("one", 0.0), ("two", 0.1)):
        write_task(tmp_path, model, "STS22", entry(0.3 + shift, subset="ar"), entry(0.4, subset="de"))
    both = {results.dataset: results for results in read_results(tmp_path)}
    assert list(both) == ["STS22 (ar)", "STS22 (de)"]
    assert both["STS22 (ar)"].values["two"] == pytest.approx([0.4])
    assert both["STS22 (ar)"].seeds["two"] == (0,)
    assert any("one value" in note for note in both["STS22 (ar)"].notes)


def test_a_model_of_mteb_without_its_description_is_called_after_its_folder(tmp_path):
    for model in ("org/one", "org/two"):
        path = write_task(tmp_path, model, "STS22", entry(0.3), split="validation")
        path.with_name("model_meta.json").unlink()
    assert read_results(tmp_path)[0].systems == ("org/one", "org/two")


def test_results_of_old_versions_of_mteb_are_refused(tmp_path):
    old = {
        "mteb_dataset_name": "STS22",
        "mteb_version": "1.0.3",
        "test": {"ar": {"cos_sim": {"spearman": 0.2}}},
    }
    with pytest.raises(SeedbedError, match=r"MTEB 1\.11"):
        read_results(write_json(tmp_path / "STS22.json", old))


# --- which format it is ---


def test_files_of_two_formats_are_refused(tmp_path):
    task = write_task(tmp_path / "mteb", "one", "STS22", entry(0.3))
    table = tmp_path / "table.csv"
    table.write_text("system,example,score\n", encoding="utf-8")
    with pytest.raises(SeedbedError, match="two formats"):
        read_results([task, table])
    write_lines(tmp_path / "mteb" / "euroeval_benchmark_results.jsonl", [old_record("one", RAW)])
    with pytest.raises(SeedbedError, match="several formats"):
        read_results(tmp_path / "mteb")


def test_json_of_no_known_program_is_refused(tmp_path):
    with pytest.raises(SeedbedError, match="no known program"):
        read_results(write_json(tmp_path / "other.json", {"accuracy": 0.5}))


# --- records of another shape than the program writes ---


@pytest.mark.parametrize(
    ("key", "value"),
    [("doc_id", "0"), ("metrics", {"acc": 1}), ("filter", 1), ("doc_hash", 5), ("doc_id", None)],
)
def test_a_sample_of_another_shape(tmp_path, key, value):
    write_model(tmp_path / "one", "mrpc", [1.0])
    path = write_lines(tmp_path / "two" / "samples_mrpc.jsonl", [sample(0, {"acc": 1.0}) | {key: value}])
    with pytest.raises(SeedbedError, match=f"no {key} of the type") as caught:
        read_results([path, tmp_path / "one"])
    assert caught.value.where == f"{path}, line 1"


@pytest.mark.parametrize(
    ("key", "value"), [("config", []), ("model_name", 3), ("higher_is_better", {"mrpc": True})]
)
def test_results_of_lm_eval_of_another_shape(tmp_path, key, value):
    folder = write_model(tmp_path / "one", "mrpc", [1.0]).parent
    path = folder / f"results_{DATE}.json"
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | {key: value})
    with pytest.raises(SeedbedError, match="of the type") as caught:
        read_results(tmp_path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dataset", 1),
        ("model", None),
        ("results", {"raw": 3}),
        ("results", {"raw": {"val": []}}),
        ("results", []),
    ],
)
def test_a_record_of_euroeval_of_another_shape(tmp_path, key, value):
    path = write_lines(tmp_path / "r.jsonl", [old_record("one", RAW), old_record("two", RAW) | {key: value}])
    with pytest.raises(SeedbedError, match="of the type") as caught:
        read_results(path)
    assert caught.value.where == f"{path}, line 2"


def test_a_task_of_mteb_of_another_shape(tmp_path):
    path = write_task(tmp_path, "one", "STS22", entry(0.3) | {"main_score": "high"})
    with pytest.raises(SeedbedError, match="main_score is no number"):
        read_results(path)
    write_json(path, {"task_name": ["STS22"], "scores": {"test": [entry(0.3)]}})
    with pytest.raises(SeedbedError, match="no task_name of the type"):
        read_results(path)
