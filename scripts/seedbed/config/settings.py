"""Every key of the config: its type, its limits, its default and its meaning.

`make reference` makes schemas/config.schema.json and docs/reference/config.md from these classes. The runs'
params contain the user's keys, then the missing ones in the order of this file, and distinguish 0 from 0.0.
So the order of keys and the type of defaults matter here.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from seedbed.config.file_formats import describe, formats_of
from seedbed.config.values import (
    END,
    Columns,
    Count,
    Encoding,
    FiniteNumber,
    Label,
    LabelColumns,
    LabelList,
    Name,
    Names,
    NonEmptyNames,
    NonEmptyText,
    NonNegative,
    NonNegativeWhole,
    Positive,
    PositiveShare,
    Seed,
    Share,
    ShareBelowOne,
    Switch,
    Text,
    Unique,
    Values,
    check_finite,
    check_group_names,
    check_task,
    either,
    kind_of_axis,
    number,
    read_group,
    read_switch,
    task_of_dataset,
    whole,
)
from seedbed.core.methods import METHODS
from seedbed.core.model_formats import MODEL_FORMATS
from seedbed.core.statistics_settings import EQUIVALENCE_MARGIN, Setting
from seedbed.core.statistics_settings import SETTINGS as STATISTICS
from seedbed.core.tasks import ANSWERS, CLASSES, DEFAULT, LABEL_SETS, TASKS, VALUES


class Block(BaseModel):
    """A block of keys; unknown keys are refused."""

    # pydantic's default engine, in Rust, has no (?!...)
    model_config = ConfigDict(extra="forbid", frozen=True, regex_engine="python-re")


def named_by(outputs: str) -> tuple[str, ...]:
    """The names of the tasks with outputs of a kind."""
    return tuple(task.name for task in TASKS.values() if task.outputs == outputs)


def key(default: Any, about: str, unit: str = "") -> Any:
    """A key of a block.

    Args:
        default: its default; ... if it is required.
        about: its description, for docs/reference/config.md, editors and errors.
        unit: the unit of its value.
    """
    if not unit:
        return Field(default, description=about)
    return Field(default, description=about, json_schema_extra={"unit": unit})


# --- the grid -------------------------------------------------------------------------------------------


class SeedPair(Block):
    """A seed of the weights, and a seed of data order and dropout."""

    init: Seed = key(..., "Seed of the weights.")
    data: Seed = key(..., "Seed of data order and dropout.")


class CrossedSeeds(Block):
    """Seeds of the weights and seeds of the data, in all combinations."""

    init: Annotated[list[Seed], Field(min_length=1), *Unique] = key(
        ..., "Seeds of the weights, each named once."
    )
    data: Annotated[list[Seed], Field(min_length=1), *Unique] = key(
        ..., "Seeds of data order and dropout, each named once."
    )


OneSeed = Annotated[
    either(dict, SeedPair, Seed),
    Field(
        description="An integer seeds weights and data order; {init: I, data: D} seeds the weights, and data "
        "order and dropout, separately."
    ),
]
Seeds = either(dict, CrossedSeeds, Annotated[list[OneSeed], Field(min_length=1), *Unique])
TrainSize = either(str, Literal["all"], whole(ge=2))


class Grid(Block):
    """The experiment's axes, which are combined; an overlay replaces a whole list."""

    datasets: Names = key(..., "Names of datasets.")
    models: Names = key(..., "Names of models.")
    recipes: Names = key(..., "Names of recipes.")
    frameworks: Annotated[list[Literal["fairseq", "transformers"]], Field(min_length=1), *Unique] = key(
        ["fairseq", "transformers"], "Frameworks."
    )
    inits: Annotated[list[Literal["pretrained", "random"]], Field(min_length=1), *Unique] = key(
        ["pretrained", "random"], "Initial weights: the checkpoint's, or random."
    )
    seeds: Seeds = key(
        [0, 1, 2],
        "A list of seeds, or two lists {init: [...], data: [...]}, whose combinations are all run, so that "
        "the spread can be divided between both.",
    )
    train_sizes: Annotated[list[TrainSize], Field(min_length=1), *Unique] | None = key(
        None,
        "Numbers of training texts, in any order, and all: [28, 112, all]. A run of a size trains on the "
        "first texts of an order that its data seed draws: subsets are nested, and have the classes in "
        "proportion. Validation and test stay whole. null: all.",
        unit="examples",
    )


class Source(Block):
    """The origin of an archive, a folder or a file."""

    locations: Annotated[list[NonEmptyText], Field(min_length=1)] = key(
        ...,
        "URLs (http, https, hf://OWNER/NAME for a repository of the Hugging Face hub), local paths "
        "(relative to the working directory) or file:// URLs, tried in order.",
    )
    sha256: Annotated[Text, Field(pattern=rf"^[0-9a-f]{{64}}{END}")] | None = key(
        None,
        "SHA-256 of the archive or file; null: the first download records it in the lock file, and later "
        "ones must match.",
    )
    bytes: NonNegativeWhole | None = key(None, "Size of the archive or file; null: unknown.", unit="bytes")
    version: Text | None = key(
        None,
        "Version, for people; for a repository on the hub, the revision (a tag, or better a commit). Each "
        "version has its own entry in the lock file.",
    )
    kind: Literal["auto", "archive", "file", "folder", "hub"] = key(
        "auto",
        "auto: by the name, an archive (.zip, .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz), else a file or "
        "folder; file: never unpacked; hub: a repository of the Hugging Face hub.",
    )
    include: Annotated[list[Text], Field(min_length=1)] | None = key(
        None, "Patterns of the wanted files (fnmatch, on the path inside the source); null: all."
    )
    licence: Text = key("", "Licence, for the report.")
    description: Text = key("", "One sentence for the report.")


# --- datasets -------------------------------------------------------------------------------------------


def choices_of(outputs: str) -> tuple[str, ...]:
    """The metrics that datasets with outputs of a kind may choose."""
    tasks = (task for task in TASKS.values() if task.outputs == outputs)
    return tuple(dict.fromkeys(name for task in tasks for name in task.choices))


TokenLimit = whole(ge=3)  # a token between the first and the last
Delimiter = Annotated[Text, Field(pattern=rf'^[^"\r\n]{END}')]
Header = Annotated[list[NonEmptyText], Field(min_length=2), *Unique]
Quoting = Literal["standard", "none"]
TASK = (
    "classification (a label for a text), multilabel (any number of labels for a text), regression (a number "
    "for a text) or generation (an answer to a question). The task determines the metrics, the selection "
    "metric, and the other keys."
)
DELIMITER = (
    "csv: the character between two columns; null: a comma, or the first of ; tab | that fits the columns if "
    "a comma does not, and the log says which. Excel writes semicolons in much of Europe. A space divides a "
    "line at the first spaces only (with header and quoting: none)."
)
ENCODING = (
    "Encoding of text files, by Python's name: cp1252, latin-1, utf-16; null: UTF-8. An encoding that does "
    "not fit is an error that proposes one."
)
HEADER = (
    "csv, tsv, excel: names of the columns, in order, of files whose first line is an example; null: the "
    "first line names them."
)
QUOTING = "csv, tsv: none: quotes are letters, and each line is a row; standard: quotes enclose cells."
RECORDS = (
    "json: path of the list of examples inside the file, such as data.items; null: the file is the list, or "
    "has it under data."
)
SHEET = "excel: name of the sheet; null: the only one that is not empty."
FORMAT_BY_ENDING = "null: by the ending of files.train (also before .gz; parquet for hf://datasets/...)."
DRAWN_BY_GROUP = (
    "by a hash of seed and group; the examples of one context (or of one question without context) are a "
    "group and stay together, as do clusters."
)


STRATIFIED = "by a hash of seed and text, stratified by label, with clusters whole."
BY_SETS = (
    "by a hash of seed and text, stratified by the set of labels, or by the rarest label of a set with fewer "
    "than 20 texts, with clusters whole."
)
BY_QUANTILES = "by a hash of seed and text, in proportion to the tenths of the labels, with clusters whole."


class Split(Block):
    """The draw of a split from the training examples."""

    size: Positive = key(0.1, "Share of the training examples if below 1, else their number.")
    seed: NonNegativeWhole = key(0, "Seed of the draw.")


class StratifiedSplit(Block):
    """The draw of a split from the training examples, in proportion to classes or to tenths of numbers."""

    size: Positive = key(0.1, "Share of the examples of the training file if below 1, else their number.")
    seed: NonNegativeWhole = key(0, "Seed of the draw.")
    together: Literal["identical", "near"] | None = key(
        None,
        "Texts that are drawn together or not at all: identical ones, or near-duplicates (see "
        "near_duplicates), too; null: near if the test split is drawn, else identical.",
    )


class Sample(Block):
    """The number of examples to keep of each split.

    They are drawn by a hash of seed and text, in proportion to the classes or to tenths of numbers; with the
    same seed, a smaller sample is a part of a larger one. Leaks and duplicates are looked for in the sample.
    """

    train: Positive | None = key(None, "Share if below 1, else number; null: all.", unit="examples")
    validation: Positive | None = key(None, "The same of the validation split.", unit="examples")
    test: Positive | None = key(None, "The same of the test split.", unit="examples")
    seed: NonNegativeWhole = key(0, "Seed of the sample.")


class Bounds(Block):
    """The numbers of a group of labels: those within all given bounds."""

    above: FiniteNumber | None = key(None, "Larger than this.")
    at_least: FiniteNumber | None = key(None, "This or larger.")
    below: FiniteNumber | None = key(None, "Smaller than this.")
    at_most: FiniteNumber | None = key(None, "This or smaller.")


Group = Annotated[
    either(dict, Bounds, Values),
    BeforeValidator(read_group, json_schema_input_type=Bounds | Values | str | float | bool),
]
LabelGroups = Annotated[dict[NonEmptyText, Group], Field(min_length=2), AfterValidator(check_group_names)]


# keys that datasets of several tasks have
VALIDATION_FILE = key(
    None,
    "Validation split: selects the checkpoint; null: drawn from the training split, see validation_split.",
)
TEST_FILE = key(
    None,
    "Test split: read once, by the selected checkpoint; null: drawn from the training split, see test_split.",
)
CLUSTER = key(
    None,
    "Column of the cluster that an example belongs to, such as its author or its product. Examples of "
    "one cluster are not independent: intervals resample clusters whole, and drawn splits share none "
    "with train. null: all examples are independent.",
)
SAMPLE = key(Sample(), "Fewer examples of each split, drawn after the splits and the same for every run.")
NEAR_DUPLICATES = key(
    0.8,
    "Least Jaccard similarity of word 3-grams of near-duplicates; null: find only identical texts.",
    unit="fraction",
)
DROP_LEAKS = key(
    False,
    "Drop training examples whose text, or a near-duplicate of it, is in validation or test.",
)
LABEL_NAMES = key(
    None,
    "Names of the labels for people, in the same order; null: the labels themselves. Changing them "
    "remakes tables, figures and report, and trains nothing.",
)


class ClassificationFiles(Block):
    """Path of each split inside the source; a pattern such as part-*.csv names several files.

    For the format lab without the ending .review or .label; for huggingface FOLDER/SPLIT, or SPLIT if the
    dataset is the whole source; for folders the folder that has one of each class. Where a file is missing,
    the same one with the ending .gz is taken.
    """

    train: Text = key(..., "Training split.")
    validation: Text | None = VALIDATION_FILE
    test: Text | None = TEST_FILE


SECOND_TEXT = (
    "Column of the second text, where the examples are pairs, such as a premise and a hypothesis; or "
    "several, joined by a space"
)
SINGLE = "null: single texts."
EMPTY = (
    "Whether an example whose text is empty, or one of both texts of a pair, is an error or is dropped, "
    "which the audit counts."
)


class ClassificationColumns(Block):
    """Names of columns, of keys of JSON (`review.text` inside another one), or of XML elements (webis_cls).

    The formats lab and folders have no names.
    """

    text: Columns = key(
        ["text"],
        "Column of the text, or several, joined by a space; for webis_cls: text, summary (the review's "
        "headline), title (the product's).",
    )
    text_pair: Columns | None = key(None, f"{SECOND_TEXT} (not for lab, folders and webis_cls). {SINGLE}")
    label: Text = key("label", "Column of the label; webis_cls needs none.")
    cluster: NonEmptyText | None = key(
        None,
        "Column of the cluster that an example belongs to, such as its author, its product, or a group of "
        "near-duplicates (not for lab, folders and webis_cls). Examples of one cluster are not independent: "
        "intervals resample clusters whole, and drawn splits share none with train. null: all examples are "
        "independent.",
    )


class ClassF1(Block):
    """The F1 of one class."""

    f1_of: Label = key(..., "Label of the class.")


class ClassificationDataset(Block):
    """Labelled texts in three splits."""

    task: Literal[named_by(CLASSES)] = key(DEFAULT, TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal[formats_of(CLASSES)] | None = key(None, f"{describe(CLASSES)}; {FORMAT_BY_ENDING}")
    delimiter: Delimiter | None = key(None, DELIMITER)
    encoding: Encoding | None = key(None, ENCODING)
    header: Header | None = key(None, HEADER)
    quoting: Quoting = key("standard", QUOTING)
    records: NonEmptyText | None = key(None, RECORDS)
    sheet: NonEmptyText | None = key(None, SHEET)
    files: ClassificationFiles
    columns: ClassificationColumns = ClassificationColumns()
    labels: either(dict, LabelGroups, LabelList) = key(
        ...,
        "The possible values of the label column, in the order of the classes; numbers and truth values "
        "count as what they are (1.0 is 1, True is true). Or groups of values by name: "
        "{low: [1, 2], high: {above: 3}}.",
    )
    other_labels: Literal["error", "drop"] = key(
        "error",
        "Whether an example whose label is missing, or is none of labels, is an error or is dropped, which "
        "the audit counts.",
    )
    empty_texts: Literal["error", "drop"] = key("error", EMPTY)
    absent_classes: Literal["error", "allow"] = key(
        "error",
        "Whether a class without an example in a given test file is an error, or allowed: its errors cannot "
        "be measured. Drawn splits may lack a rare class, with a warning.",
    )
    label_names: Annotated[list[Text], Field(min_length=2), *Unique] | None = LABEL_NAMES
    metric: either(dict, ClassF1, Literal[choices_of(CLASSES)]) | None = key(
        None,
        "The metric that selects the checkpoint on validation and leads the report, the same for all "
        "datasets of an experiment; the others are reported beside it. macro_f1: the mean F1 of the classes; "
        "balanced_accuracy: their mean recall; mcc: Matthews correlation; {f1_of: LABEL}: the F1 of one "
        "class. null: accuracy alone.",
    )
    validation_split: StratifiedSplit = key(
        StratifiedSplit(),
        f"The draw of the validation split from the training split if files.validation is null: {STRATIFIED}",
    )
    test_split: StratifiedSplit = key(
        StratifiedSplit(),
        f"The draw of the test split from the training split if files.test is null, before that of the "
        f"validation split: {STRATIFIED}",
    )
    sample: Sample = SAMPLE
    neutral_ratings: Literal["error", "drop"] = key(
        "error",
        "webis_cls: whether a rating of exactly 3, absent from the published dataset, is an error or "
        "dropped.",
    )
    near_duplicates: PositiveShare | None = NEAR_DUPLICATES
    drop_leaks: Switch = DROP_LEAKS
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


class TextFiles(Block):
    """Path of each split inside the source; a pattern such as part-*.csv names several files."""

    train: Text = key(..., "Training split.")
    validation: Text | None = VALIDATION_FILE
    test: Text | None = TEST_FILE


class RegressionColumns(Block):
    """Names of columns, or of keys of JSON (`review.text` inside another one)."""

    text: Columns = key(["text"], "Column of the text, or several, joined by a space.")
    text_pair: Columns | None = key(None, f"{SECOND_TEXT}. {SINGLE}")
    label: Text = key(
        "label", "Column of the number: with a decimal point, as a number or as text; neither empty nor NaN."
    )
    cluster: NonEmptyText | None = CLUSTER


class RegressionDataset(Block):
    """Texts with a number in three splits, such as marks or similarities."""

    task: Literal[named_by(VALUES)] = key(..., TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal[formats_of(VALUES)] | None = key(None, f"{describe(VALUES)}; {FORMAT_BY_ENDING}")
    delimiter: Delimiter | None = key(None, DELIMITER)
    encoding: Encoding | None = key(None, ENCODING)
    header: Header | None = key(None, HEADER)
    quoting: Quoting = key("standard", QUOTING)
    records: NonEmptyText | None = key(None, RECORDS)
    sheet: NonEmptyText | None = key(None, SHEET)
    files: TextFiles
    columns: RegressionColumns = RegressionColumns()
    empty_texts: Literal["error", "drop"] = key("error", EMPTY)
    metric: Literal[choices_of(VALUES)] | None = key(
        None,
        "The metric that selects the checkpoint on validation and leads the report, the same for all "
        "datasets of an experiment; the others are reported beside it. pearson, spearman: correlations of "
        "predictions and labels; mse: the mean squared error. null: pearson.",
    )
    validation_split: StratifiedSplit = key(
        StratifiedSplit(),
        "The draw of the validation split from the training split if files.validation is null: "
        f"{BY_QUANTILES}",
    )
    test_split: StratifiedSplit = key(
        StratifiedSplit(),
        f"The draw of the test split from the training split if files.test is null, before that of the "
        f"validation split: {BY_QUANTILES}",
    )
    sample: Sample = SAMPLE
    near_duplicates: PositiveShare | None = NEAR_DUPLICATES
    drop_leaks: Switch = DROP_LEAKS
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


class GenerationFiles(Block):
    """Path of each split's file inside the source."""

    train: Text = key(..., "Training split, minus the examples drawn for other splits.")
    validation: Text | None = key(
        None,
        "Validation split: selects the checkpoint; null: drawn from the training file, see validation_split.",
    )
    test: Text | None = key(
        None,
        "Test split: read once, by the selected checkpoint; null: drawn from the training file, see "
        "test_split.",
    )


class GenerationColumns(Block):
    """Names of columns, or of keys of JSON (`article.text` inside another one)."""

    question: Text = key("question", "Column of the question.")
    answer: Text = key(
        "answer",
        "Column of the answer, which the model learns to write; the reference for exact match and F1.",
    )
    context: Text | None = key(
        None,
        "Column of a text with the answer; null: the model must know the answer. The template must contain "
        "{context} if this is set, and only then.",
    )
    cluster: NonEmptyText | None = key(
        None,
        "Column of the cluster that a question belongs to, such as its author or its topic. Questions of one "
        "cluster are not independent: intervals resample clusters whole, and drawn splits share none with "
        "train. null: the questions of one context are a cluster.",
    )


class GenerationDataset(Block):
    """Questions with their answers in three splits, for a causal language model."""

    task: Literal[named_by(ANSWERS)] = key(..., TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal[formats_of(ANSWERS)] | None = key(None, f"{describe(ANSWERS)}; {FORMAT_BY_ENDING}")
    delimiter: Delimiter | None = key(None, DELIMITER)
    encoding: Encoding | None = key(None, ENCODING)
    header: Header | None = key(None, HEADER)
    quoting: Quoting = key("standard", QUOTING)
    records: NonEmptyText | None = key(None, RECORDS)
    sheet: NonEmptyText | None = key(None, SHEET)
    files: GenerationFiles
    columns: GenerationColumns = GenerationColumns()
    template: Text = key(
        "Question : {question}\nRéponse :",
        "The prompt, with {question}, and with {context} if columns.context is set; double literal braces. "
        "It has a large effect on a model that was not trained with it, so all runs of an experiment share "
        "it.",
    )
    answer_prefix: Text = key(
        " ",
        "The text between prompt and answer; it belongs to the answer's first token, since most tokenizers "
        "join a space to the following word.",
    )
    validation_split: Split = key(
        Split(),
        "The draw of the validation split from the training file if files.validation is null: "
        f"{DRAWN_BY_GROUP}",
    )
    test_split: Split = key(
        Split(),
        f"The draw of the test split from the training file if files.test is null: {DRAWN_BY_GROUP}",
    )
    near_duplicates: PositiveShare | None = key(
        None,
        "Least Jaccard similarity of word 3-grams of question and context of near-duplicates; null: find "
        "only identical examples, since questions are short.",
        unit="fraction",
    )
    drop_leaks: Switch = key(
        False,
        "Drop training examples whose question and context, or a near-duplicate of them, are in validation "
        "or test.",
    )
    max_tokens: TokenLimit | None = key(
        None,
        "Maximum length of prompt and answer together, with the end token; null: the model's positions, or "
        "no limit for a model without (BLOOM).",
        unit="tokens",
    )
    overlong: Literal["error", "cut", "drop"] = key(
        "error",
        "The treatment of an example longer than max_tokens: error; cut: its context is shortened, never the "
        "question or the answer; drop: it is omitted and counted.",
    )
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


class MultilabelColumns(Block):
    """Names of columns, or of keys of JSON (`review.text` inside another one)."""

    text: Columns = key(["text"], "Column of the text, or several, joined by a space.")
    text_pair: Columns | None = key(None, f"{SECOND_TEXT}. {SINGLE}")
    label: LabelColumns = key(
        "label",
        "Column of the labels: lists (jsonl, json, parquet, huggingface), or text that label_separator "
        "divides. Or a list of columns, one for each label, with 1 or true where a text has the label and 0 "
        "or false where not.",
    )
    cluster: NonEmptyText | None = CLUSTER


class MultilabelDataset(Block):
    """Texts with any number of labels in three splits."""

    task: Literal[named_by(LABEL_SETS)] = key(..., TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal[formats_of(LABEL_SETS)] | None = key(None, f"{describe(LABEL_SETS)}; {FORMAT_BY_ENDING}")
    delimiter: Delimiter | None = key(None, DELIMITER)
    encoding: Encoding | None = key(None, ENCODING)
    header: Header | None = key(None, HEADER)
    quoting: Quoting = key("standard", QUOTING)
    records: NonEmptyText | None = key(None, RECORDS)
    sheet: NonEmptyText | None = key(None, SHEET)
    files: TextFiles
    columns: MultilabelColumns = MultilabelColumns()
    labels: LabelList | None = key(
        None,
        "The labels that a text may have; numbers and truth values count as what they are. null: the names "
        "of the columns under columns.label, if these are several.",
    )
    label_separator: NonEmptyText | None = key(
        None,
        'The text between two labels of a cell, such as ";" (a;b); an empty cell is a text without labels. '
        "null: cells hold lists.",
    )
    empty_texts: Literal["error", "drop"] = key("error", EMPTY)
    absent_labels: Literal["error", "allow"] = key(
        "error",
        "Whether a label that no text of a given test file has is an error, or allowed: how well it is found "
        "cannot be measured, and its F1 of 0 counts in macro_f1. Drawn splits may lack a rare label, with a "
        "warning.",
    )
    label_names: Annotated[list[Text], Field(min_length=2), *Unique] | None = LABEL_NAMES
    metric: Literal[choices_of(LABEL_SETS)] | None = key(
        None,
        "The metric that selects the checkpoint on validation and leads the report, the same for all "
        "datasets of an experiment; the others are reported beside it. micro_f1: F1 of all labels of all "
        "texts together; macro_f1: the mean F1 of the labels; subset_accuracy: the share of texts all of "
        "whose labels are right. null: micro_f1.",
    )
    validation_split: StratifiedSplit = key(
        StratifiedSplit(),
        f"The draw of the validation split from the training split if files.validation is null: {BY_SETS}",
    )
    test_split: StratifiedSplit = key(
        StratifiedSplit(),
        f"The draw of the test split from the training split if files.test is null, before that of the "
        f"validation split: {BY_SETS}",
    )
    sample: Sample = SAMPLE
    near_duplicates: PositiveShare | None = NEAR_DUPLICATES
    drop_leaks: Switch = DROP_LEAKS
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


Dataset = Annotated[
    Annotated[ClassificationDataset, Tag(f"<{CLASSES}>")]
    | Annotated[MultilabelDataset, Tag(f"<{LABEL_SETS}>")]
    | Annotated[RegressionDataset, Tag(f"<{VALUES}>")]
    | Annotated[GenerationDataset, Tag(f"<{ANSWERS}>")],
    Discriminator(lambda dataset: f"<{TASKS[task_of_dataset(dataset)].outputs}>"),
    BeforeValidator(check_task),
]


# --- models and recipes ---------------------------------------------------------------------------------


class Model(Block):
    """A pretrained model and its tokenizer."""

    source: Text = key(..., "Name of a source.")
    format: Literal[tuple(MODEL_FORMATS)] = key(
        "fairseq",
        "fairseq: a RoBERTa checkpoint of fairseq with dict.txt and a SentencePiece model or GPT-2's BPE; "
        "huggingface: a RoBERTa in Transformers' format (RobertaForMaskedLM, XLM-R, CamemBERT) with its "
        "SentencePiece model; auto: any encoder that Transformers' Auto classes load for the classification "
        "of sequences (BERT, DeBERTa, ModernBERT, RoBERTa with any tokenizer), with its own tokenizer and, "
        "instead of random_init_sd, its own random initialisation, for Transformers alone; causal: a causal "
        "language model in Transformers' format (BLOOM, Llama and the like) with tokenizer.json, for the "
        "task generation.",
    )
    checkpoint: Text | None = key(
        None,
        "Path of the weights inside the source; null: model.pt (fairseq) or model.safetensors (huggingface, "
        "causal, auto), for auto also pytorch_model.bin, or the index of either's shards.",
    )
    dictionary: Text | None = key(
        None,
        "fairseq: path of the dictionary inside the source; null: dict.txt beside the weights.",
    )
    sentencepiece: Text | None = key(
        None,
        "fairseq, huggingface: path of the SentencePiece model inside the source; null: "
        "sentencepiece.bpe.model beside the weights, or for fairseq, where it is missing, GPT-2's BPE there.",
    )
    encoder: Text | None = key(
        None,
        "fairseq, for a model with GPT-2's BPE as roberta.base: path of GPT-2's encoder.json inside the "
        "source, with the number of each token; null: encoder.json beside the weights.",
    )
    bpe: Text | None = key(
        None,
        "fairseq, for a model with GPT-2's BPE: path of GPT-2's vocab.bpe inside the source, with the merges "
        "of tokens; null: vocab.bpe beside the weights.",
    )
    config: Text | None = key(
        None,
        "huggingface, causal, auto: path of config.json inside the source, for auto with the tokenizer's "
        "files beside it; null: beside the weights.",
    )
    tokenizer: Text | None = key(
        None,
        "causal: path of tokenizer.json inside the source, perhaps with tokenizer_config.json beside it; "
        "null: beside the weights.",
    )
    description: Text = key("", "One sentence for the report.")


class HeadInit(Block):
    """The distribution of new weights, which are not loaded."""

    distribution: Literal["normal", "torch"] = key(
        "torch",
        "normal: mean 0 and the given sd, biases 0; torch: torch.nn.Linear's default for weights and biases "
        "(uniform, bounded by 1/sqrt(fan-in)).",
    )
    sd: Positive = key(0.02, "Standard deviation of the normal distribution.")


class Lora(Block):
    """LoRA's adapter, with peft's names (methods lora and qlora).

    A frozen weight W becomes W + lora_alpha / r * B A; only A and B are trained.
    """

    r: Count = key(
        16,
        "Rank of the update: A is r x (inputs), B is (outputs) x r. A larger rank can express more and has "
        "proportionally more parameters.",
    )
    lora_alpha: Positive = key(
        32,
        "The update is scaled by lora_alpha / r; a larger value acts much like a larger learning rate of "
        "the adapter, so raise r and lora_alpha together to change capacity alone.",
    )
    target_modules: either(str, Literal["all-linear"], NonEmptyNames) = key(
        ["query_key_value"],
        "Names of the modules with an adapter, matched against the end of their path; or all-linear: all "
        "linear layers except the head. More modules mean more trained parameters. An unknown name is an "
        "error that lists the model's modules.",
    )
    lora_dropout: ShareBelowOne = key(
        0.05,
        "Dropout of the adapter's inputs; the frozen weights get all inputs. It regularises on a small "
        "dataset.",
        unit="fraction",
    )
    bias: Literal["none", "all", "lora_only"] = key(
        "none",
        "The trained biases of the model: none, all, or lora_only (those of the target modules). With all or "
        "lora_only, removing the adapter does not restore the original model.",
    )
    task_type: Literal["CAUSAL_LM", "SEQ_CLS"] = key(
        "CAUSAL_LM",
        "The kind of model for peft, which must fit the task: CAUSAL_LM, a language model (generation); "
        "SEQ_CLS, a classifier, whose new head is trained, too (classification).",
    )
    modules_to_save: NonEmptyNames | None = key(
        None,
        "Names of modules that are fully trained and saved with the adapter, such as an embedding; null: "
        "only the head of a classifier.",
    )


class Quantization(Block):
    """Storage of the frozen weights in 4 bits (method qlora), with Transformers' names for bitsandbytes.

    They are unpacked block by block for each product.
    """

    bnb_4bit_quant_type: Literal["nf4", "fp4"] = key(
        "nf4",
        "nf4: 16 levels at the quantiles of a normal distribution, which trained weights resemble; fp4: "
        "4-bit floating point, usually less exact.",
    )
    bnb_4bit_use_double_quant: Switch = key(
        True,
        "Also quantise the scales of the blocks: this saves about 0.4 bits per weight and hardly changes the "
        "result.",
    )
    bnb_4bit_compute_dtype: Literal["bfloat16", "float16", "float32"] = key(
        "bfloat16",
        "Type for products with unpacked weights: bfloat16 has the range of float32, float16 is for GPUs "
        "without bfloat16, float32 is slower and more exact.",
    )


class Range(Block):
    """Values of a hyperparameter that are added until the best one lies inside.

    The first stage tries start / factor, start and start * factor. As long as a side chooses its smallest or
    largest value, or more than a quarter of the resampled choices do, the next stage has one value more for
    each side, beyond that edge. Both sides have as many values.
    """

    start: Positive = key(..., "The middle one of the first three values.")
    factor: number(gt=1) = key(3, "Ratio of a value to the one below it.")
    until: Literal["interior"] = key(
        "interior", "interior: until the best value of each side lies inside its range."
    )
    max: whole(ge=3) = key(8, "The most values of a side.", unit="values")


class Between(Block):
    """Bounds of a hyperparameter, between which points lie (see points of a recipe)."""

    low: FiniteNumber = key(..., "Lower bound.")
    high: FiniteNumber = key(..., "Upper bound.")
    scale: Literal["log", "linear"] | None = key(
        None,
        "log: points are even in the logarithm; linear: in the value; null: log where high is ten times low "
        "or more, as learning rates mostly are.",
    )


# the values are checked in the recipes that they make
ValueList = Annotated[list[Annotated[Any, AfterValidator(check_finite)]], Field(min_length=1)]
Axis = Annotated[
    Annotated[ValueList, Tag("<values>")]
    | Annotated[Range, Tag("<range>")]
    | Annotated[Between, Tag("<bounds>")],
    Discriminator(kind_of_axis),
]


class Recipe(Block):
    """Hyperparameters, the same for both frameworks and both inits.

    Defaults are fairseq-train's, except for the values the lab states. Keys that a method or task does not
    use are removed from the resolved recipe, so that changing them reruns nothing.
    """

    method: Literal[tuple(METHODS)] = key(
        "full",
        "full: all weights are trained. lora: the weights are frozen, and small low-rank matrices beside "
        "some of them are trained (Hu et al., 2021); Transformers only. qlora: lora with the frozen weights "
        "in 4 bits (Dettmers et al., 2023); generation only. none: the model is evaluated without "
        "training; generation only. bitfit: only the biases and the head are trained (Ben Zaken et al., "
        "2022). last_layers: only the last layers of the encoder and the head are trained. head: only the "
        "head is trained, on states of the encoder that are computed once, without dropout. These three are "
        "not for generation.",
    )
    epochs: Count = key(5, "Passes over the training split.", unit="epochs")
    min_updates: NonNegativeWhole = key(
        100,
        "Fewest updates of a run on some of the training texts (grid.train_sizes), equal for both inits: "
        "where epochs have fewer, there is a multiple of them, with as many evaluations. Runs on all texts "
        "have epochs as they are.",
        unit="updates",
    )
    batch_size: Count = key(8, "Examples per update.", unit="examples")
    learning_rate: Positive = key(1e-5, "Peak learning rate.")
    adam_betas: Annotated[list[ShareBelowOne], Field(min_length=2, max_length=2)] = key(
        [0.9, 0.999], "Adam's decay rates of the first and second moment."
    )
    adam_epsilon: Positive = key(1e-8, "Adam's epsilon.")
    weight_decay: NonNegative = key(0.0, "Decoupled weight decay.")
    weight_decay_skip: Annotated[list[Literal["bias", "norm"]], *Unique] = key(
        [], "Weights without weight decay: bias, norm (the layer norms), both or nothing."
    )
    clip_norm: NonNegative = key(0.0, "Largest norm of the gradient; 0: no clipping.")
    warmup_ratio: Share = key(
        0.06, "Share of the updates in which the learning rate rises linearly.", unit="fraction"
    )
    schedule: Literal["polynomial", "constant"] = key(
        "polynomial",
        "Learning rate after warm-up: polynomial decay to end_learning_rate, or constant.",
    )
    schedule_power: Positive = key(1.0, "Exponent of the polynomial; 1: linear.")
    end_learning_rate: NonNegative = key(0.0, "Learning rate at the last update.")
    dropout: ShareBelowOne = key(0.1, "Dropout of hidden states and embeddings.", unit="fraction")
    attention_dropout: ShareBelowOne = key(0.1, "Dropout of attention weights.", unit="fraction")
    activation_dropout: ShareBelowOne = key(
        0.0,
        "Dropout after the activation of the feed-forward layers, which Transformers' RoBERTa lacks.",
        unit="fraction",
    )
    pooler_dropout: ShareBelowOne = key(0.0, "Dropout in the classification head.", unit="fraction")
    head_init: HeadInit = key(HeadInit(), "The distribution of new weights, which are not loaded.")
    random_init_sd: Positive = key(
        0.02, "Standard deviation of the encoder's random init (normal; biases 0, layer norms 1)."
    )
    max_positions: TokenLimit | None = key(
        None,
        "classification: longest input, with <s> and </s>; null: the model's positions. For generation, see "
        "max_tokens of a dataset.",
        unit="tokens",
    )
    precision: Literal["float32", "tf32", "float16", "bfloat16"] = key(
        "float32",
        "float32; tf32: float32 with 10 bits of mantissa in matrix products, on GPUs since Ampere (elsewhere "
        "float32); float16: for GPUs; bfloat16: on a GPU autocast, which fairseq 0.12 lacks, or with "
        "fused_seeds all tokens, in both frameworks; on a CPU products of linear layers alone, which are "
        "faster than float32 with AVX-512 BF16 or AMX.",
    )
    class_weight: Literal["balanced"] | None = key(
        None,
        "classification: weights of the classes in the training loss. balanced: n / (k n_c) for each of the "
        "n_c examples of a class, of n examples of k classes, so that every class counts alike; null: every "
        "example counts alike. Losses of evaluations are never weighted.",
    )
    lora: Lora = key(
        Lora(),
        "LoRA's adapter, with peft's names (methods lora and qlora): a frozen weight W becomes W + "
        "lora_alpha / r * B A; only A and B are trained.",
    )
    quantization: Quantization = key(
        Quantization(),
        "Storage of the frozen weights in 4 bits (method qlora), with Transformers' names for bitsandbytes; "
        "they are unpacked block by block for each product.",
    )
    frozen_dtype: Literal["float32", "bfloat16", "float16"] = key(
        "float32",
        "Type of the frozen weights (lora; in qlora, of those not in 4 bits): float32 is exact, bfloat16 and "
        "float16 halve their memory. Trained weights are in float32.",
    )
    last_layers: Count = key(
        1,
        "Number of the encoder's last layers that are trained, with a norm after them (method last_layers).",
        unit="layers",
    )
    gradient_checkpointing: Switch = key(
        False,
        "generation: recompute activations in the backward pass instead of keeping them: less memory, about "
        "a third more time, the same numbers.",
    )
    loss_on: Literal["answer", "all"] = key(
        "answer",
        "generation: tokens in the training loss: answer (with its end token), or all, with those of the "
        "prompt. Evaluation always uses the answer.",
    )
    sweep: dict[str, Axis] = key(
        {},
        "Values to try by hyperparameter, with a dot for a key of a block (lora.r): a list, a range that "
        "grows until the best value lies inside, or bounds between which points lie. Each combination of "
        "values, or each point, becomes a recipe RECIPE.KEY=VALUE of one family.",
    )
    points: whole(ge=2) | None = key(
        None,
        "Number of settings that are drawn from the sweep instead of all combinations, the same for both "
        "inits: Sobol points, most even where the number is a power of two. null: all combinations.",
        unit="settings",
    )
    points_seed: Seed = key(0, "Seed of the points.")


# --- the experiment -------------------------------------------------------------------------------------


class Evaluation(Block):
    """Evaluation of runs."""

    batch_size: Count = key(64, "Examples per batch in evaluation.", unit="examples")
    test_curves: Switch = key(
        False,
        "Also evaluate the test split after every epoch, for a figure; it never affects selection.",
    )
    max_new_tokens: Count = key(
        32,
        "generation: maximum length of a generated answer; a limit below the references' length lowers exact "
        "match and F1.",
        unit="tokens",
    )


class Checks(Block):
    """Limits of the checks before training."""

    max_unknown_share: Share = key(
        0.01,
        "Largest allowed share of unknown tokens in a split. A single piece that the dictionary lacks may "
        "have a tenth of it.",
        unit="fraction",
    )
    parity_reviews: Count = key(
        200, "Number of reviews for comparing hidden states of both frameworks.", unit="reviews"
    )
    parity_tolerance: Positive = key(1e-4, "Largest allowed difference of hidden states.")


def told(setting: Setting) -> Any:
    """The field of a setting that core knows, too."""
    return key(setting.default, setting.meaning, unit=setting.unit)


def within(setting: Setting) -> Any:
    """The type of its values."""
    return (whole if isinstance(setting.default, int) else number)(**setting.limits)


class EquivalenceMargin(Block):
    """Largest difference at which the frameworks count as equivalent, for each init."""

    pretrained: within(EQUIVALENCE_MARGIN["pretrained"]) = told(EQUIVALENCE_MARGIN["pretrained"])
    random: within(EQUIVALENCE_MARGIN["random"]) = told(EQUIVALENCE_MARGIN["random"])


class Statistics(Block):
    """Statistics in the tables."""

    confidence: within(STATISTICS["confidence"]) = told(STATISTICS["confidence"])
    power: within(STATISTICS["power"]) = told(STATISTICS["power"])
    replicates: within(STATISTICS["replicates"]) = told(STATISTICS["replicates"])
    bootstrap_seed: within(STATISTICS["bootstrap_seed"]) = told(STATISTICS["bootstrap_seed"])
    difference_of_interest: within(STATISTICS["difference_of_interest"]) = told(
        STATISTICS["difference_of_interest"]
    )
    equivalence_margin: EquivalenceMargin = EquivalenceMargin()


Look = whole(ge=3)


class Until(Block):
    """Seeds that are added until a question is decided: whether pretraining helps, by more than the
    difference of interest or by less."""

    decided: Switch = key(True, "Add seeds; false: the seeds of the grid, as without `until`.")
    max_seeds: Look = key(25, "The most seeds of a cell.", unit="seeds")
    looks: Annotated[list[Look], Field(min_length=1)] = key(
        [3, 5, 10, 17, 25],
        "Numbers of seeds with which each question is looked at, rising; max_seeds is the last. Each look "
        "spends a part of the error rate, so that all of them together have 1 - confidence.",
        unit="seeds",
    )


class Figures(Block):
    """The look of figures; no number changes."""

    smoothing: ShareBelowOne = key(
        0.6,
        "Weight of the exponential smoothing of learning curves, as TensorBoard's slider; 0: none.",
        unit="fraction",
    )


class Report(Block):
    """What report.html shows; no number changes, and only the report is made anew."""

    texts: Switch = key(
        True,
        "Show texts of the data: examples with what runs predict, and strings that many texts share. false: "
        "only their ids.",
    )


class TrainingCheckpoints(Block):
    """The pace of checkpoints from which a killed run is resumed.

    No number changes, and no run is repeated.
    """

    interval: NonNegative = key(
        60, "Shortest time between two checkpoints; SIGTERM writes one at once.", unit="seconds"
    )
    max_share: PositiveShare = key(
        0.02,
        "Largest share of a run's time for writing checkpoints; if it takes longer, they are less frequent.",
        unit="fraction",
    )


# indices are numbers and UUIDs texts, so "0" is not an index
Devices = Annotated[
    list[either(str, NonEmptyText, Annotated[int, Field(strict=True, ge=0)])], Field(min_length=1), *Unique
]


class Gpus(Block):
    """The GPUs of this host, for profiles/local-gpu; no number changes, and no run is repeated."""

    devices: either(str, Literal["auto"], Devices) = key(
        "auto",
        "auto: the GPUs in CUDA_VISIBLE_DEVICES, else all of the driver; or a list of indices or UUIDs.",
    )
    runs_per_gpu: either(str, Literal["auto"], Count) = key(
        "auto",
        "Maximum number of runs, or of batches, on one GPU at a time. auto: as many as fit by a bound of "
        "their memory, 12 at most; for generation, and where the driver tells no memory, one.",
        unit="runs",
    )
    mps: Annotated[either(bool, bool, Literal["auto"]), BeforeValidator(read_switch)] = key(
        "auto",
        "Whether the workflow starts NVIDIA's MPS where runs share a GPU, so that they compute at the same "
        "time. auto: if it works on this host; true: yes, or the workflow ends; false: no.",
    )


class Batches(Block):
    """Runs that share one job: one allocation and one GPU of a cluster.

    No number changes, unless fused_seeds is true: then it limits the runs of a model.
    """

    runs: Count = key(1, "Runs per job; 1: each run has its own job.", unit="runs")
    at_once: Count = key(
        1, "Number of these runs that train at the same time, each in its own process.", unit="runs"
    )


class Settings(Block):
    """Configuration of Seedbed."""

    experiment: Annotated[
        Text,
        Field(
            pattern=rf"^(?!(data|models|sources|logs|benchmarks)$)[A-Za-z0-9][A-Za-z0-9_.-]*{END}",
            max_length=150,
        ),
    ] = key(
        ...,
        "Name of the experiment; its folder is results/EXPERIMENT. Letters, digits, and _ . - after the "
        "first; not data, models, sources, logs or benchmarks.",
    )
    results: Annotated[Text, Field(pattern=rf"^[^{{}}\n]+{END}")] = key(
        "results",
        "Folder of all results; ~ is your own folder. Braces are not allowed, since Snakemake uses them.",
    )
    mirror: Text | None = key(
        None, "A file, or a folder searched by file name, that is tried before the locations of each source."
    )
    lock: Text = key(
        "sources.lock.json",
        "File with the SHA-256 of downloads whose hash is not in the config; later downloads must match it.",
    )
    grid: Grid
    sources: dict[Name, Source] = key(
        {},
        "Definitions of sources besides those of resources/sources.csv; an entry with the same name replaces "
        "the table's.",
    )
    datasets: dict[Name, Dataset] = key(..., "Definitions of datasets.")
    models: dict[Name, Model] = key(..., "Definitions of models.")
    recipes: dict[Name, Recipe] = key(..., "Definitions of recipes.")
    evaluation: Evaluation = Evaluation()
    checks: Checks = Checks()
    statistics: Statistics = Statistics()
    until: Until | None = key(
        None,
        "Add seeds until each question is decided: {max_seeds: 25, looks: [3, 5, 10, 17, 25]}. "
        "Seeds are those of the grid, then the next integers. null: the seeds of the grid.",
    )
    figures: Figures = Figures()
    report: Report = Report()
    device: Literal["auto", "cpu", "cuda"] = key("auto", "auto: a GPU if there is one.")
    deterministic: Switch = key(
        False,
        "Use PyTorch's deterministic kernels on a GPU; on the CPU, runs are always exactly repeatable.",
    )
    cuda_graphs: Switch = key(
        False,
        "On a GPU, launch the forward and backward pass of a classifier's update as one CUDA graph; with "
        "Transformers in bfloat16, of packed texts. Dropout draws other random numbers of the same "
        "distribution, so switching this trains the runs again. No effect on the CPU, in float16, and for "
        "models of the format auto other than RoBERTa and BERT.",
    )
    keep_model: Switch = key(False, "Keep the selected weights of every run (safetensors).")
    threads: Count = key(1, "CPU threads of one run.", unit="threads")
    training_checkpoints: TrainingCheckpoints = TrainingCheckpoints()
    gpus: Gpus = Gpus()
    batches: Batches = Batches()
    fused_seeds: Switch = key(
        False,
        "Train all seeds of a dataset, model, framework and recipe, from the checkpoint and from random "
        "weights, in one process as one batched model; if batches.runs is above 1, at most that many runs at "
        "a time. For classification with the method full or lora in float32, tf32 or bfloat16, except for "
        "models of the format auto; batches.at_once must be 1. With lora, seeds from the checkpoint share "
        "its frozen weights and train apart from seeds from random weights. With dropout, a run's random "
        "numbers depend on the runs trained with it. So switching this, or adding a seed to a group, trains "
        "the runs of that group again.",
    )
