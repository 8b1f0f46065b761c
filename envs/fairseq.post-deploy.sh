#!/usr/bin/env bash
# Finishes the conda environment fairseq.yaml; that file says why fairseq comes here, without its dependencies.
set -euo pipefail
pip install --no-deps fairseq==0.12.2
