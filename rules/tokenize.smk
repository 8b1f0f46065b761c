"""
Tokenization: the texts of a dataset as token ids of a model, the same for both frameworks.

Needs: the prepared splits and a converted checkpoint. Makes: <data>/{dataset}/{model}/tokens/ with ids, pieces
for fairseq-preprocess, and statistics.
"""


rule tokenize_texts:
    """Encode texts with SentencePiece or GPT-2's BPE, cut them to the model's positions, and count unknown pieces."""
    input:
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        subwords="<models>/{model}/subwords",
        dictionary="<models>/{model}/fairseq/dict.txt",
        definition="<models>/{model}/model.json",
    output:
        train="<data>/{dataset}/{model}/tokens/train.jsonl",
        validation="<data>/{dataset}/{model}/tokens/validation.jsonl",
        test="<data>/{dataset}/{model}/tokens/test.jsonl",
        train_pieces="<data>/{dataset}/{model}/tokens/train.pieces",
        validation_pieces="<data>/{dataset}/{model}/tokens/validation.pieces",
        test_pieces="<data>/{dataset}/{model}/tokens/test.pieces",
        statistics="<data>/{dataset}/{model}/tokens/statistics.json",
    log:
        "<logs>/tokenize_texts/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/tokenize_texts/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
        model=PLAN.models_in("fairseq", "huggingface"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/fairseq.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the texts and pieces of a split are in memory at once
        runtime=30,  # minutes; 2 s measured for 4,000 reviews
    script:
        "../scripts/tokenize_texts.py"
