"""
States of encoders: what the method head is trained on, and what probes read.

Needs: token ids, the model, and the parity gate, by which one computation serves both frameworks. Makes:
<data>/{dataset}/{model}/states/ with a file for each encoder: the pretrained one, and that of each init seed of random
weights. All runs and all experiments share them.
"""


rule encode_states:
    """Compute the encoder's states of all texts: of the first token, and the mean over tokens."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        config="<models>/{model}/huggingface/config.json",
        model="<models>/{model}/model.json",
        parity=ancient(PLAN.parity),  # a gate: no number depends on it
    output:
        states="<data>/{dataset}/{model}/states/{states}.safetensors",
    log:
        "<logs>/encode_states/{dataset}/{model}/{states}.log",
    benchmark:
        "<benchmarks>/encode_states/{dataset}/{model}/{states}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
        states=PLAN.pattern("states"),
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.config["threads"]
    resources:
        mem_mb=3000,  # as a run
        runtime=60,  # minutes; a pass over the texts on the CPU
    script:
        "../scripts/encode_states.py"
