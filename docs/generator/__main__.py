"""Write docs/reference and schemas/config.schema.json from the code: make reference

The pages are made from the settings, the tables' classes, columns.yaml, the rules, the scripts' options, the
Makefile and the experiments. A test compares them with the files.
"""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).parent))

if __name__ == "__main__":
    for path, make in import_module("pages").all_pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(), encoding="utf-8")
        print(path.relative_to(ROOT))
