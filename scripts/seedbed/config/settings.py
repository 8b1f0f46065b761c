"""Every key of the config: its type, its limits, its default and its meaning.

schemas/config.schema.json and docs/config.md are made from these classes: `make config-docs`. Keys that are
left out follow, in the order of this file, those that a user wrote; and how a value is written is a part of
the runs' params. So the order of keys and 0 instead of 0.0 matter here.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from seedbed.config.values import (
    END,
    Columns,
    Count,
    Labels,
    Name,
    Names,
    NonEmptyNames,
    NonEmptyText,
    NonNegative,
    NonNegativeWhole,
    Positive,
    PositiveShare,
    Probability,
    Seed,
    Share,
    ShareBelowOne,
    Switch,
    Text,
    Unique,
    check_finite,
    check_task,
    either,
    task_of_dataset,
    whole,
)
from seedbed.core.methods import METHODS


class Block(BaseModel):
    """A block of keys; others than these are refused."""

    # of the patterns, Rust's engine would not know (?!...)
    model_config = ConfigDict(extra="forbid", frozen=True, regex_engine="python-re")


def key(default: Any, about: str, unit: str = "") -> Any:
    """A key of a block.

    Args:
        default: its value where it is left out; ... where it has to be given.
        about: what it does, for docs/config.md, editors and errors.
        unit: of its value.
    """
    if not unit:
        return Field(default, description=about)
    return Field(default, description=about, json_schema_extra={"unit": unit})


# --- what is combined -----------------------------------------------------------------------------------


class SeedPair(Block):
    """A seed of the weights and one of data order and dropout."""

    init: Seed = key(..., "Seed of the weights.")
    data: Seed = key(..., "Seed of data order and dropout.")


class CrossedSeeds(Block):
    """Seeds of the weights by seeds of the data: every combination is run."""

    init: Annotated[list[Seed], Field(min_length=1), *Unique] = key(
        ..., "Seeds of the weights, each named once."
    )
    data: Annotated[list[Seed], Field(min_length=1), *Unique] = key(
        ..., "Seeds of data order and dropout, each named once."
    )


OneSeed = Annotated[
    either(dict, SeedPair, Seed),
    Field(
        description="An integer, or {init: I, data: D}: the seed of the weights, and that of data order and "
        "dropout."
    ),
]
Seeds = either(dict, CrossedSeeds, Annotated[list[OneSeed], Field(min_length=1), *Unique])


class Grid(Block):
    """What is combined: lists of names; an overlay replaces a list whole."""

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
        "A list of seeds, or two lists {init: [...], data: [...]}, of which every combination is run: then "
        "the spread can be divided between the two.",
    )


class Source(Block):
    """Where an archive, a folder or a file comes from."""

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
    bytes: NonNegativeWhole | None = key(None, "Size of the archive or file; null: not known.", unit="bytes")
    version: Text | None = key(
        None,
        "Version, for people; of a repository on the hub, the revision (a tag, or better a commit). Another "
        "version is another entry of the lock file.",
    )
    kind: Literal["auto", "archive", "file", "folder", "hub"] = key(
        "auto",
        "auto: an archive where the name says so (.zip, .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz), else a "
        "file or folder; file: kept as it is, even if the name is an archive's; hub: a repository of the "
        "Hugging Face hub.",
    )
    include: Annotated[list[Text], Field(min_length=1)] | None = key(
        None, "Patterns of the files that are taken (fnmatch, on the path inside the source); null: all."
    )
    licence: Text = key("", "Licence, for the report.")
    description: Text = key("", "What it is, in one sentence.")


# --- datasets -------------------------------------------------------------------------------------------

TokenLimit = whole(ge=3)  # of a text with its first and last token
Delimiter = Annotated[Text, Field(pattern=rf'^[^"\r\n]{END}')]
TASK = (
    "What is predicted: classification (a label for a text) or generation (an answer to a question). It "
    "declares the metrics and the selection metric, and which other keys there are."
)
DELIMITER = (
    "csv: the character between two columns; null: a comma. A semicolon is what Excel writes in much of "
    "Europe."
)
DRAWN_BY_GROUP = (
    "examples of one context (or one question, where there is no context) stay together, by a hash of seed "
    "and group."
)


class Split(Block):
    """How a split is drawn from the training examples."""

    size: Positive = key(0.1, "Share of the training examples, or, from 1 on, their number.")
    seed: NonNegativeWhole = key(0, "Seed of the draw.")


class ClassificationFiles(Block):
    """Path of each split inside the source.

    For the format lab without the ending .review or .label; for huggingface FOLDER/SPLIT, or SPLIT where the
    dataset is the whole source.
    """

    train: Text = key(..., "Training split.")
    validation: Text | None = key(
        None,
        "Validation split: selects the checkpoint; null: drawn from the training split, see "
        "validation_split.",
    )
    test: Text = key(..., "Test split: read once, by the selected checkpoint.")


class ClassificationColumns(Block):
    """Names of the columns (csv, tsv, jsonl, huggingface) or of the XML elements (webis_cls)."""

    text: Columns = key(
        ["text"],
        "Column of the text, or several, joined by a space (Seedbed takes single texts: columns that by "
        "their names are a pair, such as premise and hypothesis, are refused); of webis_cls: text, summary "
        "(the review's headline), title (the product's).",
    )
    label: Text = key("label", "Column of the label; webis_cls needs none.")


class ClassificationDataset(Block):
    """Labelled texts in three splits."""

    task: Literal["classification"] = key("classification", TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal["lab", "csv", "tsv", "jsonl", "webis_cls", "huggingface"] = key(
        ...,
        "lab: NAME.review and NAME.label, one example a line; csv, tsv: a header and named columns; jsonl: "
        "one JSON object a line; webis_cls: the XML of Webis-CLS-10, label 1 where the rating is over 3, "
        "else 0; huggingface: a dataset that datasets.save_to_disk wrote, files name its splits.",
    )
    delimiter: Delimiter | None = key(None, DELIMITER)
    files: ClassificationFiles
    columns: ClassificationColumns = ClassificationColumns()
    labels: Labels = key(
        ...,
        "The values that may stand in the label column, in the order of the classes: the k-th value is "
        "class k.",
    )
    label_names: Annotated[list[Text], Field(min_length=2), *Unique] | None = key(
        None,
        "What people read instead of the values, in the same order; null: the values themselves. Changing "
        "them makes tables, figures and report anew, and trains nothing.",
    )
    validation_split: Split = key(
        Split(),
        "How a validation split is drawn from the training split, where files.validation is null: "
        "stratified by label, identical texts together, by a hash of seed and text.",
    )
    neutral_ratings: Literal["error", "drop"] = key(
        "error",
        "webis_cls: what a rating of exactly 3 is, which the published dataset leaves out: an error, or "
        "dropped.",
    )
    near_duplicates: PositiveShare | None = key(
        0.8,
        "Jaccard similarity of word 3-grams from which two texts count as near-duplicates; null: only "
        "identical texts are looked for.",
        unit="fraction",
    )
    drop_leaks: Switch = key(
        False,
        "Leave training examples out whose text, or a near-duplicate of it, stands in validation or test.",
    )
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


class GenerationFiles(Block):
    """Path of each split's file inside the source."""

    train: Text = key(..., "Training split; what is drawn for the other splits is taken out of it.")
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
    """Names of the columns (csv, tsv) or of the keys (json, jsonl)."""

    question: Text = key("question", "Column of the question.")
    answer: Text = key(
        "answer",
        "Column of the answer: what the model learns to write, and the reference for exact match and F1.",
    )
    context: Text | None = key(
        None,
        "Column of a text in which the answer stands; null: the model has to know the answer. The template "
        "names it exactly if there is one.",
    )


class GenerationDataset(Block):
    """Questions with their answers in three splits, for a causal language model."""

    task: Literal["generation"] = key(..., TASK)
    source: Text = key(..., "Name of a source.")
    format: Literal["json", "jsonl", "csv", "tsv"] = key(
        ...,
        "json: one list of objects; jsonl: one JSON object a line; csv, tsv: a header and named columns.",
    )
    delimiter: Delimiter | None = key(None, DELIMITER)
    files: GenerationFiles
    columns: GenerationColumns = GenerationColumns()
    template: Text = key(
        "Question : {question}\nRéponse :",
        "The prompt, with {question} and, exactly where columns.context is set, {context}; a literal brace "
        "is doubled. It has a large effect on a model that was not trained on it, so every run of an "
        "experiment sees the same.",
    )
    answer_prefix: Text = key(
        " ",
        "What stands between prompt and answer; it belongs to the answer's first token, as most tokenizers "
        "join a space to the word after it.",
    )
    validation_split: Split = key(
        Split(),
        "How a validation split is drawn from the training file, where files.validation is null: "
        f"{DRAWN_BY_GROUP}",
    )
    test_split: Split = key(
        Split(),
        f"How a test split is drawn from the training file, where files.test is null: {DRAWN_BY_GROUP}",
    )
    near_duplicates: PositiveShare | None = key(
        None,
        "Jaccard similarity of word 3-grams of question and context from which two examples count as "
        "near-duplicates; null: only identical ones are looked for, as questions are short.",
        unit="fraction",
    )
    drop_leaks: Switch = key(
        False,
        "Leave training examples out whose question and context, or a near-duplicate of them, stand in "
        "validation or test.",
    )
    max_tokens: TokenLimit | None = key(
        None,
        "Longest prompt and answer together in tokens, the end token counted; null: the model's positions, "
        "or no limit for a model that has none (BLOOM).",
        unit="tokens",
    )
    overlong: Literal["error", "cut", "drop"] = key(
        "error",
        "What becomes of an example longer than max_tokens: an error; cut: its context is shortened, never "
        "the question or the answer; drop: it is left out and counted.",
    )
    language: Text = key("und", "BCP 47 tag, for the report.")
    description: Text = key("", "One sentence for the report.")


Dataset = Annotated[
    Annotated[ClassificationDataset, Tag("<classification>")]
    | Annotated[GenerationDataset, Tag("<generation>")],
    Discriminator(lambda dataset: f"<{task_of_dataset(dataset)}>"),
    BeforeValidator(check_task),
]


# --- models and recipes ---------------------------------------------------------------------------------


class Model(Block):
    """A pretrained model and its tokenizer."""

    source: Text = key(..., "Name of a source.")
    format: Literal["fairseq", "huggingface", "causal"] = key(
        "fairseq",
        "fairseq: a RoBERTa checkpoint of fairseq with dict.txt and a SentencePiece model; huggingface: the "
        "same model as Transformers keeps it (RobertaForMaskedLM, XLM-R, CamemBERT), with its "
        "SentencePiece model; causal: a causal language model as Transformers keeps it (BLOOM, Llama and "
        "the like) with tokenizer.json, for the task of generation.",
    )
    checkpoint: Text | None = key(
        None,
        "Path of the weights inside the source; null: model.pt (fairseq) or model.safetensors (huggingface, "
        "causal).",
    )
    dictionary: Text | None = key(
        None,
        "Path of fairseq's dictionary inside the source; null: dict.txt beside the weights (fairseq); the "
        "other formats have none.",
    )
    sentencepiece: Text | None = key(
        None,
        "Path of the SentencePiece model inside the source; null: sentencepiece.bpe.model beside the "
        "weights (fairseq, huggingface); causal has none.",
    )
    config: Text | None = key(
        None,
        "Path of config.json inside the source; null: beside the weights (huggingface, causal); fairseq has "
        "none.",
    )
    tokenizer: Text | None = key(
        None,
        "Path of tokenizer.json inside the source; null: beside the weights (causal); the other formats "
        "have none. tokenizer_config.json is looked for beside it.",
    )
    description: Text = key("", "One sentence for the report.")


class HeadInit(Block):
    """How weights that are not loaded are drawn."""

    distribution: Literal["normal", "torch"] = key(
        "torch",
        "normal: mean 0 and the given sd, biases 0; torch: torch.nn.Linear's own (uniform, bounded by "
        "1/sqrt(fan-in), biases too).",
    )
    sd: Positive = key(0.02, "Standard deviation of the normal distribution.")


class Lora(Block):
    """LoRA's adapter, with peft's own names (methods lora and qlora).

    A frozen weight W becomes W + lora_alpha / r * B A, of which only A and B are trained.
    """

    r: Count = key(
        16,
        "Rank of the update: A is r x (inputs), B is (outputs) x r. A larger one can express more and "
        "trains proportionally more parameters.",
    )
    lora_alpha: Positive = key(
        32,
        "The update is scaled by lora_alpha / r; a larger value acts much like a larger learning rate of "
        "the adapter, so raise r and lora_alpha together to change capacity alone.",
    )
    target_modules: either(str, Literal["all-linear"], NonEmptyNames) = key(
        ["query_key_value"],
        "Names of the modules that get an adapter, matched against the end of their path; or all-linear: "
        "every linear layer but the head. More modules train more parameters; a name that the model lacks "
        "is an error that lists those it has.",
    )
    lora_dropout: ShareBelowOne = key(
        0.05,
        "Share of the adapter's inputs that are dropped in training; the frozen weights see all of them. It "
        "regularises a small dataset.",
        unit="fraction",
    )
    bias: Literal["none", "all", "lora_only"] = key(
        "none",
        "Which of the model's biases are trained beside the adapter: none, all of them, or lora_only, those "
        "of the target modules. With any but none, the model without its adapter is no longer the one it "
        "was.",
    )
    task_type: Literal["CAUSAL_LM", "SEQ_CLS"] = key(
        "CAUSAL_LM",
        "What peft wraps: CAUSAL_LM a language model (generation), SEQ_CLS a classifier, whose new head is "
        "then trained, too (classification). It has to fit the task.",
    )
    modules_to_save: NonEmptyNames | None = key(
        None,
        "Names of modules that are trained in full and saved with the adapter, such as an embedding; null: "
        "none beside the head of a classifier.",
    )


class Quantization(Block):
    """How the frozen weights are kept in 4 bits (method qlora), with Transformers' names for bitsandbytes.

    They are unpacked block by block for every product.
    """

    bnb_4bit_quant_type: Literal["nf4", "fp4"] = key(
        "nf4",
        "nf4: 16 levels at the quantiles of a normal distribution, which trained weights resemble; fp4: "
        "4-bit floating point, usually less exact.",
    )
    bnb_4bit_use_double_quant: Switch = key(
        True,
        "Quantise the scales of the blocks as well: saves about 0.4 bits a weight and hardly changes the "
        "result.",
    )
    bnb_4bit_compute_dtype: Literal["bfloat16", "float16", "float32"] = key(
        "bfloat16",
        "Type in which products with unpacked weights are computed: bfloat16 keeps the range of float32, "
        "float16 is for GPUs without it, float32 is slower and more exact.",
    )


class Recipe(Block):
    """Hyperparameters; they drive both frameworks and both inits alike.

    Defaults are fairseq-train's, except for the values the lab states. What a method or task does not use is
    left out of the resolved recipe, so that changing it reruns nothing.
    """

    method: Literal[tuple(METHODS)] = key(
        "full",
        "full: all weights are trained. lora: the weights are frozen and small low-rank matrices beside "
        "some of them are trained (Hu et al., 2021); Transformers only. qlora: as lora, with the frozen "
        "weights kept in 4 bits (Dettmers et al., 2023); generation only. none: nothing is trained and the "
        "model is evaluated as it is; generation only.",
    )
    epochs: Count = key(5, "Passes over the training split.", unit="epochs")
    batch_size: Count = key(8, "Examples an update.", unit="examples")
    learning_rate: Positive = key(1e-5, "Peak learning rate.")
    adam_betas: Annotated[list[ShareBelowOne], Field(min_length=2, max_length=2)] = key(
        [0.9, 0.999], "Adam's decay rates of the first and second moment."
    )
    adam_epsilon: Positive = key(1e-8, "Adam's epsilon.")
    weight_decay: NonNegative = key(0.0, "Decoupled weight decay.")
    weight_decay_skip: Annotated[list[Literal["bias", "norm"]], *Unique] = key(
        [], "What weight decay leaves out: bias, norm (the layer norms), both or nothing."
    )
    clip_norm: NonNegative = key(0.0, "Largest norm of the gradient; 0: no clipping.")
    warmup_ratio: Share = key(
        0.06, "Share of the updates in which the learning rate rises linearly.", unit="fraction"
    )
    schedule: Literal["polynomial", "constant"] = key(
        "polynomial",
        "How the learning rate falls after warm-up: polynomial to end_learning_rate, or constant.",
    )
    schedule_power: Positive = key(1.0, "Exponent of the polynomial; 1: linear.")
    end_learning_rate: NonNegative = key(0.0, "Learning rate at the last update.")
    dropout: ShareBelowOne = key(0.1, "Dropout of hidden states and embeddings.", unit="fraction")
    attention_dropout: ShareBelowOne = key(0.1, "Dropout of attention weights.", unit="fraction")
    activation_dropout: ShareBelowOne = key(
        0.0,
        "Dropout after the activation of the feed-forward layers; Transformers' RoBERTa has none.",
        unit="fraction",
    )
    pooler_dropout: ShareBelowOne = key(0.0, "Dropout in the classification head.", unit="fraction")
    head_init: HeadInit = key(HeadInit(), "How weights that are not loaded are drawn.")
    random_init_sd: Positive = key(
        0.02, "Standard deviation of the encoder's random init (normal; biases 0, layer norms 1)."
    )
    max_positions: TokenLimit | None = key(
        None,
        "classification: longest input in tokens, <s> and </s> counted; null: what the model allows. "
        "Questions have max_tokens in their dataset.",
        unit="tokens",
    )
    precision: Literal["float32", "tf32", "float16", "bfloat16"] = key(
        "float32",
        "float32; tf32 is float32 with matrix products of 10 bits of mantissa, on GPUs that have it (Ampere "
        "or later; elsewhere it is float32); float16 and bfloat16 need a GPU, and fairseq 0.12 has no "
        "bfloat16 there.",
    )
    lora: Lora = key(
        Lora(),
        "LoRA's adapter, with peft's own names (methods lora and qlora): a frozen weight W becomes W + "
        "lora_alpha / r * B A, of which only A and B are trained.",
    )
    quantization: Quantization = key(
        Quantization(),
        "How the frozen weights are kept in 4 bits (method qlora), with the names of bitsandbytes in "
        "Transformers; they are unpacked block by block for every product.",
    )
    frozen_dtype: Literal["float32", "bfloat16", "float16"] = key(
        "float32",
        "Type of the weights that are not trained (methods lora and qlora; there, of those that are not in "
        "4 bits): float32 is exact, bfloat16 and float16 halve their memory. What is trained is kept in "
        "float32.",
    )
    gradient_checkpointing: Switch = key(
        False,
        "generation: compute activations anew in the backward pass instead of keeping them: less memory, "
        "about a third more time, the same numbers.",
    )
    loss_on: Literal["answer", "all"] = key(
        "answer",
        "generation: the tokens whose loss is trained on: answer: those of the answer and its end; all: "
        "those of the prompt, too. Evaluation is always on the answer.",
    )
    # the values are checked in the recipes that they make
    sweep: dict[str, Annotated[list[Annotated[Any, AfterValidator(check_finite)]], Field(min_length=1)]] = (
        key(
            {},
            "Lists of values by hyperparameter, with a dot for one inside a block (lora.r); several lists "
            "multiply. Makes a family of recipes named RECIPE.KEY=VALUE.",
        )
    )


# --- the experiment -------------------------------------------------------------------------------------


class Evaluation(Block):
    """How runs are evaluated."""

    batch_size: Count = key(64, "Examples a batch in evaluation.", unit="examples")
    test_curves: Switch = key(
        False,
        "Also evaluate the test split after every epoch, for a figure; it never selects anything.",
    )
    max_new_tokens: Count = key(
        32,
        "generation: tokens after which an answer that has not ended is cut off; a short limit lowers exact "
        "match and F1 where references are longer.",
        unit="tokens",
    )


class Checks(Block):
    """Limits of the checks before training."""

    max_unknown_share: Share = key(
        0.01,
        "Largest share of unknown tokens in a split. One piece that the SentencePiece model has and the "
        "dictionary lacks may make up a tenth of it.",
        unit="fraction",
    )
    parity_reviews: Count = key(
        200, "Reviews on which hidden states of both frameworks are compared.", unit="reviews"
    )
    parity_tolerance: Positive = key(1e-4, "Largest difference of hidden states that passes.")


class EquivalenceMargin(Block):
    """Largest difference between the frameworks that counts as none, for each init."""

    pretrained: PositiveShare = key(
        0.01, "Margin for runs from the checkpoint: 0.01 is one point of accuracy.", unit="fraction"
    )
    random: PositiveShare = key(0.02, "Margin for runs from random weights.", unit="fraction")


class Statistics(Block):
    """How tables are computed."""

    confidence: Probability = key(0.95, "Level of intervals.", unit="fraction")
    power: Probability = key(0.8, "Power for which the number of seeds is given.", unit="fraction")
    replicates: whole(ge=100, le=1_000_000) = key(
        10_000,
        "Bootstrap replicates of seeds and test examples behind each interval.",
        unit="replicates",
    )
    bootstrap_seed: NonNegativeWhole = key(
        0, "Seed of the bootstrap's draws: the same tables come out each time."
    )
    equivalence_margin: EquivalenceMargin = EquivalenceMargin()


class Figures(Block):
    """How figures are drawn; it changes no number."""

    smoothing: ShareBelowOne = key(
        0.6,
        "Weight of the exponential smoothing of learning curves, as the slider of TensorBoard; 0: none.",
        unit="fraction",
    )


class TrainingCheckpoints(Block):
    """How often a run saves its state, from which it goes on after it was killed.

    It changes no number and reruns nothing.
    """

    interval: NonNegative = key(60, "Shortest time between two; SIGTERM writes one at once.", unit="seconds")
    max_share: PositiveShare = key(
        0.02,
        "Largest share of a run's time that writing them may take: where it takes longer, they come less "
        "often.",
        unit="fraction",
    )


# indices and UUIDs are told apart, so that "0" is no index
Devices = Annotated[
    list[either(str, NonEmptyText, Annotated[int, Field(strict=True, ge=0)])], Field(min_length=1), *Unique
]


class Gpus(Block):
    """The GPUs of this host, for profiles/local-gpu; it changes no number and reruns nothing."""

    devices: either(str, Literal["auto"], Devices) = key(
        "auto",
        "auto: those of CUDA_VISIBLE_DEVICES, else all that the driver lists; or a list of indices or UUIDs.",
    )
    runs_per_gpu: Count = key(1, "Runs that may share one GPU at a time.", unit="runs")


class Batches(Block):
    """Runs that share one job: one allocation and one GPU of a cluster.

    It changes no number, except where fused_seeds is true, as it then limits the seeds of a model.
    """

    runs: Count = key(1, "Runs of one job; 1: every run is a job of its own.", unit="runs")
    at_once: Count = key(1, "Of these, how many at the same time, each in a process of its own.", unit="runs")


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
        "Folder of everything that is made; ~ is your own. Braces are Snakemake's, and cannot be part of it.",
    )
    mirror: Text | None = key(
        None, "A file, or a folder that is searched by file name, before the locations of every source."
    )
    lock: Text = key(
        "sources.lock.json",
        "File that records the SHA-256 of every download whose hash the configuration does not state; later "
        "downloads must match it.",
    )
    grid: Grid
    sources: dict[Name, Source] = key(
        {},
        "Definitions of sources beyond those of resources/sources.csv; an entry of the same name replaces "
        "the table's whole.",
    )
    datasets: dict[Name, Dataset] = key(..., "Definitions of datasets.")
    models: dict[Name, Model] = key(..., "Definitions of models.")
    recipes: dict[Name, Recipe] = key(..., "Definitions of recipes.")
    evaluation: Evaluation = Evaluation()
    checks: Checks = Checks()
    statistics: Statistics = Statistics()
    figures: Figures = Figures()
    device: Literal["auto", "cpu", "cuda"] = key("auto", "auto: a GPU where there is one.")
    deterministic: Switch = key(
        False,
        "Ask PyTorch for deterministic kernels on a GPU; on the CPU runs repeat exactly anyway.",
    )
    cuda_graphs: Switch = key(
        False,
        "On a GPU, launch the forward and backward pass of a classifier's update as one CUDA graph. Dropout "
        "draws other random numbers of the same distribution, so switching this trains the runs anew. "
        "Without effect on the CPU and in float16.",
    )
    keep_model: Switch = key(False, "Keep the selected weights of every run (safetensors).")
    threads: Count = key(1, "CPU threads of one run.", unit="threads")
    training_checkpoints: TrainingCheckpoints = TrainingCheckpoints()
    gpus: Gpus = Gpus()
    batches: Batches = Batches()
    fused_seeds: Switch = key(
        False,
        "Train all seeds of a cell (dataset, model, framework, init, recipe) in one process, as one batched "
        "model; where batches.runs is above 1, at most so many at a time. For classification with the "
        "method full in float32, tf32 or (Transformers alone) bfloat16; batches.at_once must be 1. The "
        "seeds that are trained together are a part of what a run is: with dropout on, its random numbers "
        "depend on them. So another group of seeds, or a run trained by itself, is another result, and "
        "switching this or adding a seed to a group trains the runs of that group anew.",
    )
